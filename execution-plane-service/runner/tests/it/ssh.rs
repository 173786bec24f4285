//! ssh jobs on real servers.

use contracts::{ExecutionStatus, ExitCategory, JobStarted};
use serde_json::json;

use crate::harness::{Job, Runner, outputs};
use crate::sshd::{Sshd, running};

async fn with_target() -> (Runner, Sshd) {
    let (runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    (runner, sshd)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_target_has_a_result_of_its_own() {
    let (runner, sshd) = with_target().await;
    let script = "test -e /proc/self && echo \"on $0\" && [ \"$1\" != x ] || kill -9 $$";
    let targets = vec![
        sshd.target("web-1"),
        sshd.target("web-2"),
        sshd.target_with("web-3", 1, &sshd.host_key),
    ];
    let job = Job::new("ssh", json!({"commands": [["/bin/sh", "-c", script]]})).on(targets);
    let id = runner.submit(job);
    let result = runner.plane.result(id).await;
    let targets = &outputs(&result)["targets"];
    assert_eq!(targets["node/web-1"]["status"], "ok");
    assert_eq!(targets["node/web-2"]["exit_code"], 0);
    assert_eq!(targets["node/web-3"]["status"], "unreachable");
    assert_eq!(
        (result.status, result.exit_summary.category),
        (ExecutionStatus::Failed, ExitCategory::InfrastructureError)
    );
    let shown = runner.plane.output(id);
    assert!(
        shown.contains("node/web-1 | on /bin/sh\n") && shown.contains("node/web-2 | on /bin/sh\n"),
        "{shown}"
    );
    assert!(shown.contains("node/web-3: unreachable"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_another_key_is_never_logged_in_to() {
    let (runner, sshd) = with_target().await;
    let other = Sshd::start();
    let touched = sshd.place().join("touched");
    let job = Job::new("ssh", json!({"commands": [["touch", touched]]}));
    let id = runner.submit(job.on(vec![sshd.target_with("web-1", sshd.port, &other.host_key)]));
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.exit_summary.category),
        (ExecutionStatus::Failed, ExitCategory::InfrastructureError)
    );
    assert!(
        result.exit_summary.message.contains("Host key verification failed"),
        "{}",
        result.exit_summary.message
    );
    assert!(!touched.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_46_the_first_failing_command_fails_unless_said_otherwise() {
    let (runner, sshd) = with_target().await;
    let run = async |parameters| {
        let id = runner.submit(Job::new("ssh", parameters).on(vec![sshd.target("web-1")]));
        (runner.plane.result(id).await, runner.plane.output(id))
    };
    let commands = json!(["false", "echo after"]);
    let (result, shown) = run(json!({"commands": commands})).await;
    assert_eq!((result.status, result.exit_summary.code), (ExecutionStatus::Failed, 1));
    assert!(!shown.contains("after"), "{shown}");
    let (result, shown) = run(json!({"commands": commands, "stop_on_failure": false})).await;
    assert_eq!(result.status, ExecutionStatus::Failed);
    assert!(
        shown.contains("after\n") && shown.contains("command 1 of 2 ended with exit code 1"),
        "{shown}"
    );
    let (result, _) = run(json!({"commands": commands, "exit_rule": "last"})).await;
    assert_eq!(result.status, ExecutionStatus::Succeeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_45_a_script_gets_its_arguments_byte_for_byte() {
    let (runner, sshd) = with_target().await;
    let arguments = ["", "é \"x\"", "", "$(id) `id` ${HOME}", "it's\n{{ 7*7 }}", ""];
    for (name, value) in [
        (
            "script",
            "#!/bin/sh\nfor a in \"$@\"; do printf '<%s>' \"$a\"; done; exit 5\n",
        ),
        ("script_file", "run.sh"),
    ] {
        let parameters = json!({name: value, "arguments": arguments});
        let job = Job::new("ssh", parameters).on(vec![sshd.target("web-1")]);
        let script = "#!/bin/sh\nfor a in \"$@\"; do printf '<%s>' \"$a\"; done; exit 5\n";
        let id = runner.submit(if name == "script_file" {
            job.content(&[("run.sh", script)])
        } else {
            job
        });
        let result = runner.plane.result(id).await;
        assert_eq!(result.exit_summary.code, 5, "{}", result.exit_summary.message);
        let expected: String = arguments.iter().map(|argument| format!("<{argument}>")).collect();
        assert!(
            runner.plane.output(id).contains(&expected),
            "{}",
            runner.plane.output(id)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_the_policy_does_not_allow_never_runs() {
    let (runner, sshd) = with_target().await;
    let touched = sshd.place().join("touched");
    let job = Job::new("ssh", json!({"commands": [["uptime"], ["touch", touched]]})).on(vec![sshd.target("web-1")]);
    let id = runner.submit(job.policy(json!({"allow": [{"argv": ["uptime"]}]})));
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.exit_summary.category, result.job_started),
        (ExitCategory::PolicyError, Some(JobStarted::No))
    );
    assert!(
        result.exit_summary.message.contains("/inputs/parameters/commands/1"),
        "{}",
        result.exit_summary.message
    );
    assert!(!touched.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_evidence_of_a_job_decides_against_its_exit_code() {
    let (runner, sshd) = with_target().await;
    let marker = sshd.place().join("joined");
    std::fs::write(&marker, "").unwrap();
    let checks = json!([{"name": "joined", "capability": "node.joined", "type": "command_check", "target": "*", "argv": ["test", "-e", marker]}]);
    let job = || {
        Job::new(
            "ssh",
            json!({"commands": ["echo already joined; exit 1"], "checks": checks}),
        )
        .on(vec![sshd.target("web-1")])
        .with("/output_contract/evidence", json!(["joined"]))
    };
    let result = runner.plane.result(runner.submit(job())).await;
    assert_eq!(
        (result.status, result.exit_summary.code),
        (ExecutionStatus::Succeeded, 1)
    );
    std::fs::remove_file(&marker).unwrap();
    let result = runner.plane.result(runner.submit(job())).await;
    assert_eq!(result.status, ExecutionStatus::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_given_to_the_agent_logs_in_and_is_in_no_file() {
    let (runner, sshd) = with_target().await;
    let check =
        json!({"name": "ok", "capability": "web.http", "type": "command_check", "target": "*", "command": "true"});
    let job = Job::new("ssh", json!({"commands": ["echo in"], "checks": [check]})).on(vec![sshd.target("web-1")]);
    let secrets = json!([{"secret_ref": crate::harness::LOGIN_KEY, "as": "agent"}]);
    let id = runner.submit(job.with("/inputs/secrets", secrets));
    let result = runner.plane.result(id).await;
    assert_eq!(
        result.status,
        ExecutionStatus::Succeeded,
        "{}",
        result.exit_summary.message
    );
    assert!(runner.plane.output(id).contains("in\n"));
    assert!(
        running(&format!("attempt-{id}/agent")).is_empty(),
        "the agent ends with the attempt"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_is_fetched_from_the_target_and_must_have_one_origin() {
    let (runner, sshd) = with_target().await;
    let job = |targets, command: &str| {
        Job::new("ssh", json!({"commands": [command]}))
            .on(targets)
            .with("/output_contract/artifacts", json!(["report"]))
    };
    let id = runner.submit(job(
        vec![sshd.target("web-1")],
        "printf 'fine\\0' >$PLATFORM_ARTIFACTS/report",
    ));
    let result = runner.plane.result(id).await;
    assert_eq!(
        result.status,
        ExecutionStatus::Succeeded,
        "{}",
        result.exit_summary.message
    );
    assert_eq!(runner.plane.state().attempts[&id].artifacts["report"], b"fine\0");
    assert!(
        !std::path::Path::new(&format!("/tmp/.platform-{id}")).exists(),
        "nothing is left on the target"
    );
    for (command, said) in [
        ("true", "declared and not produced"),
        (
            "ln -s /etc/hostname $PLATFORM_ARTIFACTS/report",
            "declared and not produced",
        ),
    ] {
        let result = runner
            .plane
            .result(runner.submit(job(vec![sshd.target("web-1")], command)))
            .await;
        assert_eq!(
            (result.status, result.exit_summary.category),
            (ExecutionStatus::Failed, ExitCategory::ValidationError)
        );
        assert!(
            result.exit_summary.message.contains(said),
            "{}",
            result.exit_summary.message
        );
    }
}
