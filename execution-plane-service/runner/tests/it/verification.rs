//! Verification jobs: what is looked at, what is kept, what it means.

use contracts::{EvidenceResult, ExecutionStatus, ExitCategory, JobStarted};
use kernel::{Sha256Digest, canonical_digest};
use serde_json::{Value, json};

use crate::harness::{Job, Runner};
use crate::sshd::Sshd;

fn check(fields: Value) -> Value {
    let mut check = json!({"name": "ok", "capability": "web.http"});
    check
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    check
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_is_made_by_the_runner_itself_and_its_source_is_the_job_spec() {
    let runner = Runner::start().await;
    let the_check = check(json!({"type": "value_check", "value": {"a": [1]}, "equals": {"a": [1]}}));
    let job = Job::new("verification", json!({"checks": [the_check]}));
    let id = runner.submit(job.with("/output_contract/evidence", json!(["ok"])));
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.job_started),
        (ExecutionStatus::Succeeded, Some(JobStarted::Yes))
    );
    let evidence = &result.evidence[0];
    assert_eq!(
        (evidence.result, evidence.attempt_id),
        (EvidenceResult::Passed, Some(id))
    );
    assert_eq!(
        evidence.source_ref,
        format!("job-spec://{id}/inputs/parameters/checks/0")
    );
    assert_eq!(evidence.sha256, canonical_digest(&the_check).ok());
    let state = runner.plane.state();
    let record = &state.attempts[&id];
    assert!(
        record.chunks.is_empty() && record.artifacts.is_empty(),
        "one call tells it all"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_check_looks_at_every_target_and_keeps_what_it_saw() {
    let (runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    let checks = json!([
        check(
            json!({"type": "command_check", "target": "*", "argv": ["echo", "hello world"], "expect": {"stdout_contains": "hello"}})
        ),
        check(json!({"name": "bad", "type": "command_check", "target": "node/web-1", "command": "exit 3"})),
    ]);
    let targets = vec![sshd.target("web-1"), sshd.target("web-2")];
    let id = runner.submit(Job::new("verification", json!({"checks": checks})).on(targets));
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.exit_summary.category),
        (ExecutionStatus::Failed, ExitCategory::ValidationError)
    );
    assert!(
        result.exit_summary.message.contains("exit code 3"),
        "{}",
        result.exit_summary.message
    );
    let found: Vec<_> = result
        .evidence
        .iter()
        .map(|e| {
            (
                e.name.as_deref().unwrap(),
                e.resource_id.as_ref().unwrap().to_string(),
                e.result,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("ok", "node/web-1".into(), EvidenceResult::Passed),
            ("ok", "node/web-2".into(), EvidenceResult::Passed),
            ("bad", "node/web-1".into(), EvidenceResult::Failed),
        ]
    );
    let state = runner.plane.state();
    let source = &state.attempts[&id].artifacts["check.ok.node-web-2.txt"];
    assert!(String::from_utf8_lossy(source).contains("hello world"));
    assert_eq!(result.evidence[1].sha256, Some(Sha256Digest::of(source)));
    assert!(result.evidence[1].source_ref.ends_with("/check.ok.node-web-2.txt"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_check_is_repeated_until_it_passes() {
    let runner = Runner::start().await;
    let hits = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = hits.clone();
    let answer = move || async move {
        let nth = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let status = if nth < 2 {
            axum::http::StatusCode::SERVICE_UNAVAILABLE
        } else {
            axum::http::StatusCode::OK
        };
        (status, r#"{"state": {"ready": true}}"#)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/health", listener.local_addr().unwrap());
    let router = axum::Router::new().route("/health", axum::routing::get(answer));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let expect = json!({"status": 200, "json_path": [{"path": "$.state.ready", "equals": true}]});
    let the_check = check(json!({"type": "api_check", "url": url, "expect": expect, "retry_until_seconds": 30}));
    let id = runner.submit(Job::new("verification", json!({"checks": [the_check]})));
    let result = runner.plane.result(id).await;
    assert_eq!(
        result.status,
        ExecutionStatus::Succeeded,
        "{}",
        result.exit_summary.message
    );
    assert_eq!(hits.load(std::sync::atomic::Ordering::SeqCst), 3);
    let state = runner.plane.state();
    let source = String::from_utf8_lossy(&state.attempts[&id].artifacts["check.ok.txt"]).into_owned();
    assert!(source.contains("200 OK") && source.contains("ready"), "{source}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_looked_at_is_inconclusive_and_no_success() {
    let runner = Runner::start().await;
    let logs = runner.directory.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    std::fs::write(logs.join("app.log"), "started\nready\n").unwrap();
    std::fs::write(runner.directory.path().join("outside.log"), "ready\n").unwrap();
    std::os::unix::fs::symlink(runner.directory.path().join("outside.log"), logs.join("link.log")).unwrap();
    let log = |name: &str, file: std::path::PathBuf| {
        check(json!({"name": name, "type": "log_check", "path": file, "matches": "^ready$"}))
    };
    let checks = json!([
        log("good", logs.join("app.log")),
        log("link", logs.join("link.log")),
        log("outside", runner.directory.path().join("outside.log")),
        check(json!({"name": "refused", "type": "api_check", "url": "http://127.0.0.1:1/"})),
    ]);
    let id = runner.submit(Job::new("verification", json!({"checks": checks})));
    let result = runner.plane.result(id).await;
    let found: Vec<_> = result.evidence.iter().map(|evidence| evidence.result).collect();
    use EvidenceResult::{Failed, Inconclusive, Passed};
    assert_eq!(found, [Passed, Inconclusive, Inconclusive, Failed]);
    assert_eq!(result.status, ExecutionStatus::Failed);
}
