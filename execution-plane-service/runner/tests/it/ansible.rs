//! ansible jobs: real ansible-core on real servers.

use contracts::{ExecutionStatus, ExitCategory, ExitReason, JobStarted};
use serde_json::{Value, json};

use crate::harness::{Job, Runner, ansible_directory, outputs};
use crate::sshd::{Sshd, running};

async fn with_target() -> (Runner, Sshd) {
    let sshd = Sshd::start();
    let runner = Runner::start_with(|config| config.ansible_directory = Some(ansible_directory())).await;
    runner.put_key(&sshd.private_key);
    (runner, sshd)
}

fn playbook(parameters: Value, text: &str) -> Job {
    let mut all = json!({"playbook": "site.yml"});
    all.as_object_mut()
        .unwrap()
        .extend(parameters.as_object().unwrap().clone());
    Job::new("ansible", all).content(&[("site.yml", text)])
}

#[tokio::test(flavor = "multi_thread")]
async fn every_host_has_a_result_and_check_mode_changes_nothing() {
    let (runner, sshd) = with_target().await;
    let file = sshd.place().join("deployed");
    let text = format!(
        "- hosts: all\n  gather_facts: false\n  tasks:\n    - name: deploy\n      copy: {{content: \"{{{{ greeting }}}}\\n\", dest: \"{}\"}}\n",
        file.display()
    );
    let job = |check: bool| {
        let parameters = json!({"extra_vars": {"greeting": "hello"}, "check_mode": check, "diff": true});
        playbook(parameters, &text).on(vec![sshd.target("web-1")])
    };
    let id = runner.submit(job(true));
    let result = runner.plane.result(id).await;
    assert_eq!(
        result.status,
        ExecutionStatus::Succeeded,
        "{}\n{}",
        result.exit_summary.message,
        runner.plane.output(id)
    );
    assert_eq!(outputs(&result)["hosts"]["node/web-1"]["changed"], 1);
    assert!(runner.plane.output(id).contains("+hello"), "the diff is shown");
    assert!(!file.exists(), "check mode changes nothing");
    let result = runner.plane.result(runner.submit(job(false))).await;
    assert_eq!(result.status, ExecutionStatus::Succeeded);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello\n");
    let again = runner.plane.result(runner.submit(job(false))).await;
    assert_eq!(outputs(&again)["hosts"]["node/web-1"]["status"], "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_is_told_with_its_host_name_and_message_and_unreachable_is_told_apart() {
    let (runner, sshd) = with_target().await;
    let text = "- hosts: all\n  gather_facts: false\n  tasks:\n    - name: fine\n      command: 'true'\n    - name: write ä\n      copy: {content: x, dest: /proc/no/way}\n      when: inventory_hostname == 'web-1'\n";
    let targets = vec![
        sshd.target("web-1"),
        sshd.target("web-2"),
        sshd.target_with("web-3", 1, &sshd.host_key),
    ];
    let result = runner
        .plane
        .result(runner.submit(playbook(json!({}), text).on(targets.clone())))
        .await;
    let hosts = &outputs(&result)["hosts"];
    assert_eq!(
        (result.status, result.exit_summary.category),
        (ExecutionStatus::Failed, ExitCategory::Unknown)
    );
    assert_eq!(
        (&hosts["node/web-1"]["status"], &hosts["node/web-1"]["task"]),
        (&json!("failed"), &json!("write ä"))
    );
    assert!(
        hosts["node/web-1"]["message"].as_str().unwrap().contains("/proc/no"),
        "{hosts}"
    );
    assert_eq!(hosts["node/web-2"]["failed"], 0);
    assert_eq!(hosts["node/web-3"]["status"], "unreachable");
    assert!(
        result
            .exit_summary
            .message
            .contains("node/web-1: task \"write ä\" failed"),
        "{}",
        result.exit_summary.message
    );
    let result = runner
        .plane
        .result(runner.submit(playbook(json!({}), text).on(targets[1..].to_vec())))
        .await;
    assert_eq!(result.exit_summary.category, ExitCategory::InfrastructureError);
    assert!(
        result.exit_summary.message.contains("node/web-3 is unreachable"),
        "{}",
        result.exit_summary.message
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_2_a_run_on_no_host_or_on_other_hosts_is_no_success() {
    let (runner, sshd) = with_target().await;
    for (text, said) in [
        ("- hosts: database\n  tasks: []\n", "nothing ran on node/web-1"),
        ("[]\n", ""),
        (
            "- hosts: all\n  gather_facts: false\n  tasks: []\n",
            "nothing ran on node/web-1",
        ),
        (
            "- hosts: web-2\n  gather_facts: false\n  tasks: [{command: 'true'}]\n",
            "nothing ran on node/web-1",
        ),
        (
            "- hosts: localhost\n  gather_facts: false\n  connection: local\n  tasks: [{command: 'true'}]\n",
            "nothing ran on node/web-1",
        ),
        (
            "- hosts: all\n  gather_facts: false\n  tasks:\n    - command: 'true'\n    - add_host: {name: other, ansible_connection: local}\n- hosts: other\n  gather_facts: false\n  tasks: [{command: 'true'}]\n",
            "\"other\", which is no target",
        ),
    ] {
        let id = runner.submit(playbook(json!({}), text).on(vec![sshd.target("web-1"), sshd.target("web-2")]));
        let result = runner.plane.result(id).await;
        assert_eq!(
            result.status,
            ExecutionStatus::Failed,
            "{text}\n{}",
            runner.plane.output(id)
        );
        assert!(
            result.exit_summary.message.contains(said),
            "{text}: {}",
            result.exit_summary.message
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_45_names_and_values_round_trip_byte_for_byte_and_are_never_templates() {
    let (runner, sshd) = with_target().await;
    let value = json!({"text": "{{ 7 * 7 }} $(id) \"é'\\ \u{1f600}\u{7f}\u{85}\n#: - !x\t%", "ключ {{x}}": [1.5, 1e30, -7, true, null, "no", "0x10", "1_000"]});
    let file = sshd.place().join("seen.json");
    let text = format!(
        "- name: 'play ü: #1 {{x'\n  hosts: all\n  gather_facts: false\n  tasks:\n    - name: 'task \"ё\": - [1]'\n      copy: {{content: \"{{{{ value | to_json }}}}\", dest: \"{}\"}}\n    - name: 'fails: ''é'' {{'\n      fail: {{msg: 'ünder'}}\n",
        file.display()
    );
    let id = runner
        .submit(playbook(json!({"extra_vars": {"value": value}}), &text).on(vec![sshd.target("web-1.example_x")]));
    let result = runner.plane.result(id).await;
    let seen: Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap_or_else(|_| panic!("{}", runner.plane.output(id))))
            .unwrap();
    assert_eq!(seen, value);
    let host = &outputs(&result)["hosts"]["node/web-1.example_x"];
    assert_eq!(
        (&host["task"], &host["message"]),
        (&json!("fails: 'é' {"), &json!("ünder"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_leaves_nothing_of_it_here_or_there_but_what_shed_the_mark() {
    let (runner, sshd) = with_target().await;
    let needle = || format!("0.{}", uuid::Uuid::now_v7().as_u128());
    let (ended, kept) = (needle(), needle());
    let started = sshd.place().join("started");
    let text = format!(
        "- hosts: all\n  gather_facts: false\n  tasks:\n    - shell: env -u PLATFORM_ATTEMPT setsid sleep 600 {kept} >/dev/null 2>&1 &\n    - shell: touch {} && setsid sleep 600 {ended}\n",
        started.display()
    );
    let id = runner.submit(playbook(json!({}), &text).on(vec![sshd.target("web-1")]));
    while running(&format!("sleep\0600\0{ended}")).is_empty() {
        assert!(
            runner.plane.state().attempts[&id].result.is_none(),
            "{}",
            runner.plane.output(id)
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    runner
        .plane
        .change(|state| state.attempts.get_mut(&id).unwrap().cancel = true);
    let result = runner.plane.result(id).await;
    assert_eq!(
        (result.status, result.reason),
        (ExecutionStatus::Cancelled, Some(ExitReason::Person))
    );
    assert_eq!(outputs(&result)["remote_processes"], "ended");
    assert_eq!((running(&ended).len(), running(&kept).len()), (0, 1));
    for pid in running(&kept) {
        assert!(
            std::process::Command::new("kill")
                .arg(pid.to_string())
                .status()
                .unwrap()
                .success()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_run_is_refused_before_anything_runs() {
    let (runner, sshd) = with_target().await;
    let without_keys =
        json!({"resource_id": "node/x", "resource_type": "compute.node", "connection": {"address": "h", "user": "u"}});
    let missing = Job::new("ansible", json!({"playbook": "other.yml"})).content(&[("site.yml", "[]")]);
    let good = "- hosts: all\n";
    for (job, said) in [
        (missing.on(vec![sshd.target("web-1")]), "no other.yml"),
        (playbook(json!({}), good).on(vec![]), "no target"),
        (playbook(json!({}), good).on(vec![without_keys]), "host key"),
        (
            playbook(json!({"unknown": 1}), good).on(vec![sshd.target("web-1")]),
            "/inputs/parameters/unknown",
        ),
    ] {
        let result = runner.plane.result(runner.submit(job)).await;
        assert_eq!(
            (result.exit_summary.category, result.job_started),
            (ExitCategory::ValidationError, Some(JobStarted::No))
        );
        assert!(
            result.exit_summary.message.contains(said),
            "{}",
            result.exit_summary.message
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_artifact_is_collected_or_the_job_has_failed() {
    let (runner, sshd) = with_target().await;
    let text = "- hosts: all\n  gather_facts: false\n  tasks:\n    - delegate_to: localhost\n      connection: local\n      copy: {content: 'all good', dest: \"{{ lookup('env', 'PLATFORM_ARTIFACTS') }}/{{ name }}\"}\n";
    let run = async |name: &str| {
        let job = playbook(json!({"extra_vars": {"name": name}}), text).on(vec![sshd.target("web-1")]);
        let id = runner.submit(job.with("/output_contract/artifacts", json!(["install_report"])));
        (id, runner.plane.result(id).await)
    };
    let (id, result) = run("install_report").await;
    assert_eq!(
        result.status,
        ExecutionStatus::Succeeded,
        "{}\n{}",
        result.exit_summary.message,
        runner.plane.output(id)
    );
    assert_eq!(
        runner.plane.state().attempts[&id].artifacts["install_report"],
        b"all good"
    );
    let (_, result) = run("something_else").await;
    assert_eq!(
        (result.status, result.exit_summary.category),
        (ExecutionStatus::Failed, ExitCategory::ValidationError)
    );
    assert!(
        result
            .exit_summary
            .message
            .contains("install_report was declared and not produced")
    );
}
