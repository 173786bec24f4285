use contracts::{Isolation, JobType};
use execution_plane_api::RunnerClient;
use identity::Role;
use serde_json::json;

use crate::harness::{World, code, held, noop, noop_json, registration};

#[tokio::test]
async fn an_enrolment_token_enrols_the_runner_that_it_names_and_no_other() {
    let world = World::start().await;
    let token = world.token("enrolment:r1", world.organization, &[Role::Runner]);
    let client = RunnerClient::new(world.client(token));
    client.open_session(&registration("r1")).await.unwrap();
    let refused = client.open_session(&registration("r2")).await.unwrap_err();
    assert_eq!(code(&refused), (403, "forbidden"));
    let refused = client.pull(&Default::default()).await.unwrap_err();
    assert_eq!(code(&refused), (403, "forbidden"), "an enrolment token does no work");
}

#[tokio::test]
async fn a_runner_rotates_its_token_without_disturbing_what_it_holds() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    let rotated = runner.client.open_session(&runner.registration).await.unwrap();
    assert_eq!(rotated.runner_id, runner.session.runner_id);
    assert_eq!(
        rotated.session, runner.session.session,
        "the same process, the same session"
    );
    assert!(
        !format!("{rotated:?}").contains(&rotated.token),
        "no token in debug output"
    );
    assert!(runner.pull_holding(1, 0, &[held(&lease)]).await.gone.is_empty());
    runner.finish(&lease, 0).await.unwrap();
}

#[tokio::test]
async fn a_new_process_of_the_same_name_supersedes_the_older_one() {
    let world = World::start().await;
    let before = world.runner("r1").await;
    let after = world.runner("r1").await;
    assert_eq!(after.session.runner_id, before.session.runner_id);
    assert_eq!(after.session.session, before.session.session + 1);
    for refused in [
        before.client.open_session(&before.registration).await.err(),
        before.client.pull(&Default::default()).await.err(),
        before
            .client
            .renew(&Default::default(), std::time::Duration::from_secs(30))
            .await
            .err(),
    ] {
        assert_eq!(code(&refused.unwrap()), (401, "session_superseded"));
    }
}

#[tokio::test]
async fn attempts_go_only_to_runners_that_can_do_them_in_full() {
    let world = World::start().await;
    let mut strong = registration("strong");
    strong.isolation = vec![Isolation::Container];
    strong.labels = [("gpu".to_owned(), "yes".to_owned())].into();
    strong.environments = vec!["prod".into()];
    strong.job_types = vec![JobType::Verification];
    let strong = world.runner_of(world.organization, strong).await;
    let plain = world.runner("plain").await;

    world.submit(&[noop()]).await;
    let mut prod = noop_json();
    prod["target"]["environment"] = json!("prod");
    prod["runner"] = json!({"name": "default", "isolation": "container", "labels": {"gpu": "yes"}});
    world.submit_one(prod.clone()).await;
    let mut named = noop_json();
    named["runner"]["name"] = json!("plain");
    world.submit_one(named.clone()).await;

    let strong: Vec<_> = strong
        .pull(10, 0)
        .await
        .into_iter()
        .map(|lease| json!(lease.attempt_id))
        .collect();
    assert_eq!(strong, [prod["attempt_id"].clone()]);
    assert_eq!(plain.pull(10, 0).await.len(), 2);
}

#[tokio::test]
async fn a_registration_that_breaks_rules_has_every_fault_named() {
    let world = World::start().await;
    let mut bad = registration("r1");
    bad.capacity = 0;
    bad.job_types = Vec::new();
    bad.isolation = Vec::new();
    let token = world.token("enrolment:r1", world.organization, &[Role::Runner]);
    let refused = RunnerClient::new(world.client(token))
        .open_session(&bad)
        .await
        .unwrap_err();
    let mut pointers: Vec<_> = refused
        .problem()
        .unwrap()
        .errors
        .iter()
        .map(|e| e.pointer.clone())
        .collect();
    pointers.sort();
    assert_eq!(
        pointers,
        [
            "/registration/capacity",
            "/registration/isolation",
            "/registration/job_types"
        ]
    );
}
