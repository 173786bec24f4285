use execution_plane_api::ResultsPullRequest;

use crate::harness::{World, code, finish, noop};

#[tokio::test]
async fn results_come_again_until_they_are_acknowledged() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop(), noop()]).await;
    for lease in runner.pull(2, 30).await {
        runner.finish(&lease, 0).await.unwrap();
    }
    let first = world.results(Vec::new()).await;
    assert_eq!(first.len(), 2);
    assert_eq!(world.results(Vec::new()).await, first);
    assert_eq!(world.results(vec![first[0].attempt_id]).await, first[1..]);
    let request = ResultsPullRequest {
        ack: vec![first[0].attempt_id, first[1].attempt_id],
        limit: 10,
        wait_seconds: 0,
        running: None,
    };
    assert!(world.plane().pull_results(&request).await.unwrap().results.is_empty());
}

#[tokio::test]
async fn the_end_never_changes_a_repeat_gets_the_first_answer_and_another_report_is_refused() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    let report = finish(&lease, 0);
    let ends = (0..4).map(|_| runner.client.finish(lease.attempt_id, &report));
    let first = futures::future::join_all(ends).await;
    for end in &first {
        assert_eq!(end.as_ref().unwrap(), first[0].as_ref().unwrap());
    }
    let mut other = report.clone();
    other.result.exit_summary.message = "something else".into();
    let refused = runner.client.finish(lease.attempt_id, &other).await.unwrap_err();
    assert_eq!(code(&refused), (409, "attempt_finished"));
    let mut foreign = report;
    foreign.result.plan_node_id = "another".into();
    let refused = runner.client.finish(lease.attempt_id, &foreign).await.unwrap_err();
    assert_eq!(refused.status().map(|status| status / 100), Some(4));
    assert_eq!(world.results(Vec::new()).await.len(), 1);
}

#[tokio::test]
async fn a_result_that_names_another_attempt_or_fills_in_what_is_the_services_is_refused() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    world.submit(&[noop()]).await;
    let lease = runner.one().await;
    let mut report = finish(&lease, 0);
    report.result.attempt_id = kernel::id::AttemptId::new_v7();
    let refused = runner.client.finish(lease.attempt_id, &report).await.unwrap_err();
    assert_eq!(refused.problem().unwrap().errors[0].pointer, "/result/attempt_id");
    let mut report = finish(&lease, 0);
    report.result.operation_id = kernel::id::OperationId::new_v7();
    let refused = runner.client.finish(lease.attempt_id, &report).await.unwrap_err();
    assert_eq!(refused.problem().unwrap().errors[0].pointer, "/result/operation_id");
}

#[tokio::test]
async fn many_submissions_and_ends_at_once_each_have_their_own_outcome() {
    let world = World::start().await;
    let runner = world.runner("r1").await;
    let plane = world.plane();
    let specs: Vec<_> = (0..80).map(|_| noop()).collect();
    let submissions = specs.iter().map(|spec| plane.submit(vec![spec.clone()]));
    for outcome in futures::future::join_all(submissions).await {
        assert_eq!(outcome.unwrap().outcomes.len(), 1);
    }
    let leases = runner.pull(80, 30).await;
    let client = &runner.client;
    assert_eq!(leases.len(), 80);
    let ends = leases.iter().enumerate().map(|(n, lease)| async move {
        let mut report = finish(lease, 0);
        report.result.exit_summary.code = i32::try_from(n).unwrap();
        let end = runner_finish(client, lease, &report).await;
        assert_eq!(end.exit_summary.code, i32::try_from(n).unwrap());
    });
    futures::future::join_all(ends).await;
    assert_eq!(world.results(Vec::new()).await.len(), 80);
}

async fn runner_finish(
    client: &execution_plane_api::RunnerClient,
    lease: &execution_plane_api::Lease,
    report: &execution_plane_api::FinishRequest,
) -> contracts::ExecutionResult {
    client.finish(lease.attempt_id, report).await.unwrap().result
}
