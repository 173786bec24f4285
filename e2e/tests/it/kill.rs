//! kill -9 at every named place of every process, one after the other; then of PostgreSQL itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use e2e::{Deployment, Options, Role, World, one_host};

use crate::stories::{PATIENCE, Story, Teller, endless};

const ARM: &str = "PLATFORM_FAILPOINT";
const LOG: &str = "PLATFORM_FAILPOINT_LOG";

async fn stage() -> (Deployment, Arc<World>, Teller) {
    let deployment = Deployment::start(&Options::default()).await;
    let world = Arc::new(World::start(&deployment, 1).await);
    let teller = Teller::of(&deployment);
    teller.publish(&one_host()).await;
    teller.publish(&endless()).await;
    // The copy of the catalog is there before the first plan.
    teller.catalog_is_whole().await;
    (deployment, world, teller)
}

/// Restarts every service and the runner with these variables.
async fn restart_all(deployment: &mut Deployment, variables: &[(&str, &str)]) {
    for role in [
        Role::Runner,
        Role::ControlPlane,
        Role::ExecutionPlane,
        Role::ResourceCatalog,
    ] {
        deployment.signal(role, rustix::process::Signal::TERM);
        deployment.ended(role).await;
    }
    for role in &Role::ALL[1..] {
        deployment.launch(*role, variables);
    }
    for role in &Role::ALL[1..4] {
        deployment.wait_ready(*role).await;
    }
}

/// The part of the stage hand in a story that loses its runner: kills it once its job is at work.
async fn lose_runner(deployment: &mut Deployment, world: &World, mark: &str, story: Story) {
    if story != Story::Lost {
        return;
    }
    let deadline = Instant::now() + PATIENCE;
    while world.lines(0, mark) == 0 {
        assert!(Instant::now() < deadline, "{mark}: the job does not run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    deployment.kill(Role::Runner).await;
}

/// Every declared place, with the story that reaches it.
async fn reached(
    deployment: &mut Deployment,
    world: &World,
    teller: &Teller,
    log: &PathBuf,
) -> BTreeMap<String, Story> {
    let mut places = BTreeMap::new();
    for (index, story) in Story::ALL.into_iter().enumerate() {
        std::fs::write(log, "").expect("own file");
        restart_all(
            deployment,
            &[(ARM, "trace"), (LOG, log.to_str().expect("a plain path"))],
        )
        .await;
        let mark = format!("trace-{index}");
        let (told, ()) = tokio::join!(
            teller.tell(story, &mark, world),
            lose_runner(deployment, world, &mark, story)
        );
        if story == Story::Lost {
            deployment.launch(Role::Runner, &[]);
        }
        teller.end(told.summary.id).await;
        // What follows the end (acknowledgements, the feed, the projection) belongs to the story.
        teller.catalog_is_whole().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        for line in std::fs::read_to_string(log).expect("own file").lines() {
            let name = line
                .split_whitespace()
                .find(|word| Role::of_failpoint(word).is_some() && word.contains('.'));
            if let Some(name) = name {
                places.entry(name.to_owned()).or_insert(story);
            }
        }
    }
    places
}

fn was_hit(log: &PathBuf, name: &str) -> bool {
    std::fs::read_to_string(log)
        .unwrap_or_default()
        .split_whitespace()
        .any(|word| word == name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_every_named_place_nothing_is_lost_and_nothing_runs_twice() {
    let (mut deployment, world, teller) = stage().await;
    let declared: Vec<String> = deployment
        .platform(&["failpoints"])
        .lines()
        .map(str::to_owned)
        .collect();
    assert!(declared.len() > 20, "the registry is there: {declared:?}");
    let log = deployment.path().join("failpoints.log");
    let places = reached(&mut deployment, &world, &teller, &log).await;
    let missing: Vec<&String> = declared.iter().filter(|name| !places.contains_key(*name)).collect();
    assert!(missing.is_empty(), "no story reaches {missing:?}");

    restart_all(&mut deployment, &[]).await;
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    let mut hit = 0;
    for (index, (name, story)) in places.iter().enumerate() {
        let role = Role::of_failpoint(name).expect("a role");
        std::fs::write(&log, "").expect("own file");
        deployment.kill(role).await;
        deployment.launch(role, &[(ARM, name), (LOG, log.to_str().expect("a plain path"))]);
        let mark = format!("k{index}");
        let telling = {
            let (teller, story, mark, world) = (teller.clone(), *story, mark.clone(), world.clone());
            tokio::spawn(async move { teller.tell(story, &mark, &world).await })
        };
        lose_runner(&mut deployment, &world, &mark, *story).await;
        let deadline = Instant::now() + PATIENCE;
        while !was_hit(&log, name) {
            assert!(Instant::now() < deadline, "{name} was not reached");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        deployment.ended(role).await;
        hit += 1;
        deployment.launch(role, &[]);
        if *story == Story::Lost {
            deployment.launch(Role::Runner, &[]);
        }
        let operation = telling.await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let operation = teller.end(operation.summary.id).await;
        *ends
            .entry(format!("{story:?} {}", operation.summary.state.as_str()))
            .or_default() += 1;
        teller.check_invariants(&operation, &world, &mark, *story).await;
    }
    teller.catalog_is_whole().await;
    println!(
        "killed at {hit} of {} named places; operations ended: {ends:?}",
        declared.len()
    );
    deployment.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_postgresql_under_a_running_operation_loses_nothing() {
    let (deployment, world, teller) = stage().await;
    for index in 0..4_u64 {
        let mark = format!("p{index}");
        let telling = {
            let (teller, mark, world) = (teller.clone(), mark.clone(), world.clone());
            tokio::spawn(async move { teller.tell(Story::Straight, &mark, &world).await })
        };
        // At different moments of the story.
        tokio::time::sleep(Duration::from_millis(150 + 250 * index)).await;
        deployment.kill_postgres();
        let operation = telling.await.expect("the story is told to its end");
        let operation = teller.end(operation.summary.id).await;
        teller
            .check_invariants(&operation, &world, &mark, Story::Straight)
            .await;
    }
    teller.catalog_is_whole().await;
    deployment.stop().await;
}
