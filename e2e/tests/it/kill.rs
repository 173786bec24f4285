//! kill -9 at every named place of every process, one after the other; then of PostgreSQL itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_plane_api::OperationState;
use e2e::{Options, Role};

use crate::stage::{Armed, Stage};
use crate::stories::Story;
use crate::teller::until;

/// Every place, with the first story that passes it.
async fn passed(stage: &Stage, declared: &[String]) -> BTreeMap<String, Story> {
    let mut places = BTreeMap::new();
    stage.arm(Armed::Trace);
    stage.restart_all().await;
    for story in Story::ALL {
        let mark = format!("trace-{}", places.len());
        let promised = stage.tell(story, &mark).await;
        if let Some(id) = promised.operation {
            stage.teller.end(id).await;
        }
        stage.catalog_is_whole().await;
        for place in stage.places() {
            places.entry(place).or_insert(story);
        }
    }
    // A runner opens its session when it starts: before the first story here, within one only where it is lost.
    for (place, story) in &mut places {
        if place.starts_with("execution_plane.session.") {
            *story = Story::Lost;
        }
    }
    // What follows an end (acknowledgements, deletions, compactions) belongs to the last story that has some.
    until("every place is passed", async || {
        for place in stage.places() {
            places.entry(place).or_insert(Story::Straight);
        }
        let missing: Vec<_> = declared.iter().filter(|name| !places.contains_key(*name)).collect();
        if !missing.is_empty() {
            tracing_line(&format!("not passed yet: {missing:?}"));
        }
        missing.is_empty().then_some(())
    })
    .await;
    stage.arm(Armed::Nothing);
    stage.restart_all().await;
    places
}

/// Told once, so that a wait that fails says what it waited for.
#[expect(clippy::print_stdout, reason = "a test's own report")]
fn tracing_line(text: &str) {
    static LAST: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());
    let mut last = LAST.lock().expect("no panic under it");
    if *last != text {
        println!("{text}");
        text.clone_into(&mut last);
    }
}

/// Dies at one place while its story is told, and checks what is left. Says how the operation ended.
#[expect(clippy::print_stdout, reason = "a test's own report")]
async fn die_at(stage: &Arc<Stage>, name: &str, story: Story, mark: &str) -> String {
    let role = Role::of_failpoint(name).expect("a role");
    stage.arm(Armed::Place(name.to_owned()));
    stage.deployment.kill(role).await;
    stage.launch(role);
    println!("{name}: {story:?} {mark}");
    let (promised, ()) = tokio::join!(stage.tell(story, mark), stage.die_and_rise(name));
    stage.promises_are_kept(&promised, mark).await;
    let Some(id) = promised.operation else {
        return format!("{story:?}");
    };
    let operation = stage.teller.end(id).await;
    let state = operation.summary.state;
    // Only who loses the runner under a job may be left without knowing what it came to.
    if matches!(story, Story::Straight | Story::Course) && role != Role::Runner {
        assert_eq!(state, OperationState::Succeeded, "{name}: {operation:#?}");
    }
    stage.nothing_is_left_of(&operation, story, mark).await;
    format!("{story:?} {}", state.as_str())
}

/// Dies at each of these places, one after the other, in a deployment of its own. Says how the stories ended.
async fn die_at_each(stage: Arc<Stage>, places: Vec<(String, Story)>, lane: usize) -> Vec<String> {
    let mut ends = Vec::new();
    for (index, (name, story)) in places.iter().enumerate() {
        ends.push(die_at(&stage, name, *story, &format!("k{lane}-{index}")).await);
    }
    stage.catalog_is_whole().await;
    until("all content is delivered", async || {
        let owed = "SELECT count(*) FROM content_deliveries WHERE delivered_at IS NULL";
        (stage.deployment.number("control_plane", owed).await == 0).then_some(())
    })
    .await;
    stage.deployment.stop().await;
    ends
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_every_named_place_nothing_is_lost_and_nothing_runs_twice() {
    // Short, because some stories wait for it to run out; not so short that a busy machine cannot renew in time.
    let options = Options {
        lease_seconds: 3.0,
        ..Options::default()
    };
    let (first, second) = tokio::join!(Stage::up(&options), Stage::up(&options));
    let declared = first.deployment.platform(&["failpoints"]);
    let declared: Vec<String> = declared.lines().map(str::to_owned).collect();
    assert!(declared.len() > 20, "the registry is there: {declared:?}");
    let places = passed(&first, &declared).await;
    // Most of the time is spent waiting for leases and for processes to start: two deployments share it.
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for (index, name) in declared.iter().enumerate() {
        let lane = if index % 2 == 0 { &mut one } else { &mut other };
        lane.push((name.clone(), places[name]));
    }
    let (one, other) = tokio::join!(die_at_each(first, one, 0), die_at_each(second, other, 1));
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for end in [one, other].concat() {
        *ends.entry(end).or_default() += 1;
    }
    println!(
        "killed at {} of {} named places; stories ended: {ends:?}",
        ends.values().sum::<usize>(),
        declared.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_postgresql_under_a_running_operation_loses_nothing() {
    let stage = Stage::up(&Options::default()).await;
    for index in 0..4 {
        let mark = format!("p{index}");
        let events = async || {
            let told = "SELECT count(*) FROM operation_events";
            stage.deployment.number("control_plane", told).await
        };
        let before = events().await;
        let killing = async {
            // At different moments of the story, counted in what has happened.
            until("the story is that far", async || {
                (events().await > before + 4 * index).then_some(())
            })
            .await;
            stage.deployment.kill_postgres();
        };
        let (promised, ()) = tokio::join!(stage.tell(Story::Straight, &mark), killing);
        let id = promised.operation.expect("a story with an operation");
        let operation = stage.teller.end(id).await;
        assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
        stage.promises_are_kept(&promised, &mark).await;
        stage.nothing_is_left_of(&operation, Story::Straight, &mark).await;
    }
    stage.catalog_is_whole().await;
    stage.deployment.stop().await;
}
