use contracts::JobSpec;
use execution_plane_api::{AttemptOutcome, AttemptState};
use identity::Role;
use kernel::Sha256Digest;
use serde_json::json;

use crate::harness::{World, code, noop, noop_json};

#[tokio::test]
async fn the_same_attempt_twice_is_one_attempt_and_another_body_is_a_conflict() {
    let world = World::start().await;
    let spec = noop();
    world.submit(std::slice::from_ref(&spec)).await;
    let again = world.plane().submit(vec![spec.clone()]).await.unwrap();
    assert_eq!(again.outcomes[0].outcome, AttemptOutcome::Replayed);
    assert_eq!(again.outcomes[0].state, Some(AttemptState::Queued));
    let other = JobSpec {
        plan_node_id: "another".into(),
        ..spec.clone()
    };
    let refused = world.plane().submit(vec![other]).await.unwrap().outcomes.remove(0);
    assert_eq!(refused.outcome, AttemptOutcome::Conflict);
    assert_eq!(refused.problem.unwrap().code, "attempt_conflict");
    let runner = world.runner("r1").await;
    assert_eq!(runner.pull(10, 0).await.len(), 1);
}

#[tokio::test]
async fn invariant_6_the_same_attempt_from_many_sides_at_once_is_accepted_once() {
    let world = World::start().await;
    let twin = world.twin().await;
    let specs: Vec<_> = (0..10).map(|_| noop()).collect();
    let planes = [world.plane(), twin.plane()];
    let submissions = (0..8).map(|n| planes[n % 2].submit(specs.clone()));
    let mut accepted = 0;
    for outcome in futures::future::join_all(submissions).await {
        for outcome in outcome.unwrap().outcomes {
            accepted += usize::from(outcome.outcome == AttemptOutcome::Accepted);
            assert!(matches!(
                outcome.outcome,
                AttemptOutcome::Accepted | AttemptOutcome::Replayed
            ));
        }
    }
    assert_eq!(accepted, 10);
    assert_eq!(world.runner("r1").await.pull(100, 0).await.len(), 10);
}

#[tokio::test]
async fn the_same_attempt_twice_in_one_batch_is_accepted_once() {
    let world = World::start().await;
    let spec = noop();
    let outcomes = world.plane().submit(vec![spec.clone(), spec]).await.unwrap().outcomes;
    let mut found: Vec<_> = outcomes.iter().map(|outcome| outcome.outcome).collect();
    found.sort_by_key(|outcome| format!("{outcome:?}"));
    assert_eq!(found, [AttemptOutcome::Accepted, AttemptOutcome::Replayed]);
}

#[tokio::test]
async fn each_item_of_a_batch_has_an_outcome_of_its_own() {
    let world = World::start().await;
    let mut malformed = noop_json();
    malformed["job_type"] = json!("cobol");
    let mut unknown = noop_json();
    unknown["walltime"] = json!(3);
    unknown["controls"]["nice"] = json!(1);
    let client = world.client(world.token("service:control-plane", world.organization, &[Role::Service]));
    let batch = json!({"attempts": [noop_json(), malformed, unknown, noop_json()]});
    let outcome: execution_plane_api::AttemptBatchOutcome =
        client.post("/v1/attempt-batches").body(&batch).json().await.unwrap();
    let kinds: Vec<_> = outcome.outcomes.iter().map(|outcome| outcome.outcome).collect();
    use AttemptOutcome::{Accepted, Refused};
    assert_eq!(kinds, [Accepted, Refused, Refused, Accepted]);
    let problem = outcome.outcomes[2].problem.as_ref().unwrap();
    let mut pointers: Vec<_> = problem.errors.iter().map(|error| error.pointer.as_str()).collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/controls/nice", "/walltime"]);
}

#[tokio::test]
async fn what_can_be_known_at_submission_is_refused_there() {
    let world = World::start().await;
    let digest = Sha256Digest::of(b"nowhere");
    let cases = [
        ("/job_type", json!("helm"), "job_type_not_available"),
        ("/target/resources", json!([]), "invalid_job_spec"),
        (
            "/inputs/parameters",
            json!({"checks": [{"type": "x"}]}),
            "invalid_job_spec",
        ),
        ("/content", json!({"sha256": digest}), "content_missing"),
        (
            "/inputs/artifacts",
            json!([{"artifact_ref": "artifact://operation/none"}]),
            "artifact_missing",
        ),
        (
            "/controls/allowed_commands_ref",
            json!("policy/none"),
            "unknown_command_policy",
        ),
    ];
    for (pointer, value, expected) in cases {
        let mut spec = noop_json();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap()[key] = value;
        let outcome = world.submit_one(spec).await;
        assert_eq!(outcome.outcome, AttemptOutcome::Refused, "{pointer}");
        let problem = outcome.problem.unwrap();
        assert_eq!((problem.status, problem.code.as_str()), (422, expected), "{pointer}");
        assert!(!problem.errors.is_empty() && !problem.detail.is_empty(), "{problem}");
    }
    assert!(
        world
            .plane()
            .attempts(&Default::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn a_runner_that_nobody_registered_is_refused_once_there_are_runners() {
    let world = World::start().await;
    let mut spec = noop_json();
    spec["runner"]["name"] = json!("elsewhere");
    let waiting = world.submit_one(spec.clone()).await;
    assert_eq!(waiting.outcome, AttemptOutcome::Accepted, "a runner may still come");
    let attempt = world.plane().attempt(waiting.attempt_id.unwrap()).await.unwrap();
    assert_eq!(attempt.waiting_for.unwrap(), "no runner called elsewhere is registered");
    world.runner("r1").await;
    spec["attempt_id"] = json!(kernel::id::AttemptId::new_v7());
    let refused = world.submit_one(spec).await;
    assert_eq!(refused.problem.unwrap().code, "unknown_runner");
}

#[tokio::test]
async fn field_note_20_only_control_plane_submits_cancels_and_takes_results() {
    let world = World::start().await;
    let spec = noop();
    for role in Role::ALL {
        let person = world.person(role);
        let refused = person.submit(vec![spec.clone()]).await.unwrap_err();
        assert_eq!(code(&refused), (403, "forbidden"), "{role}");
        let refused = person.cancel(spec.attempt_id, Default::default()).await.unwrap_err();
        assert_eq!(code(&refused), (403, "forbidden"), "{role}");
        let request = execution_plane_api::ResultsPullRequest {
            limit: 1,
            ..Default::default()
        };
        let refused = person.pull_results(&request).await.unwrap_err();
        assert_eq!(code(&refused), (403, "forbidden"), "{role}");
    }
}
