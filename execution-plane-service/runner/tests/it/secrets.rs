//! Canary secrets: zero hits in everything that leaves the runner or touches its disk.

use base64::Engine;
use contracts::{ExecutionStatus, ExitCategory, JobStarted};
use serde_json::json;

use crate::harness::{Job, LOGIN_KEY, Runner, ansible_directory};
use crate::sshd::Sshd;

const CANARY: &str = "c4n4ry \"quoted\" <&>' /é\nsecond-line-of-it\n";

/// Pieces of the canary that no encoding of it may leave readable.
const TRACES: [&str; 4] = ["c4n4ry", "second-line", "Y2V1c", "YzRuNHJ5"];

fn assert_clean(runner: &Runner, id: kernel::id::AttemptId) {
    let state = runner.plane.state();
    let record = &state.attempts[&id];
    let mut all: Vec<u8> = record.chunks.iter().flat_map(|chunk| chunk.data.to_vec()).collect();
    all.extend(record.artifacts.values().flatten());
    all.extend(serde_json::to_vec(&record.result).unwrap());
    for file in files_below(runner.directory.path()) {
        all.extend(std::fs::read(file).unwrap_or_default());
    }
    let text = String::from_utf8_lossy(&all);
    for trace in TRACES {
        if let Some(place) = text.find(trace) {
            let around: String = text[..place].chars().rev().take(300).collect();
            panic!("{trace} after {:?}", around.chars().rev().collect::<String>());
        }
    }
}

fn files_below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            files.extend(files_below(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_47_a_canary_in_tasks_loops_and_arguments_at_the_highest_verbosity_is_never_seen() {
    let sshd = Sshd::start();
    let runner = Runner::start_with(|config| config.ansible_directory = Some(ansible_directory())).await;
    runner.put_key(&sshd.private_key);
    runner.secrets.put("app/db", "value", CANARY.as_bytes(), None).unwrap();
    let text = r#"
- hosts: all
  gather_facts: false
  vars: {secret: "{{ lookup('file', lookup('env', 'PLATFORM_SECRETS') + '/db', rstrip=false) }}"}
  tasks:
    - debug: {msg: "{{ secret }} {{ secret | b64encode }} {{ ('x' + secret) | b64encode }} {{ secret | urlencode }} {{ secret | to_json }}"}
    - command: {argv: [echo, "{{ item }}"]}
      loop: ["{{ secret }}", "{{ secret | b64encode }}"]
    - shell: "printf %s {{ secret | quote }} | tee /dev/stderr"
    - fail: {msg: "it was {{ secret }}"}
"#;
    let job = Job::new("ansible", json!({"playbook": "site.yml", "verbosity": 4})).content(&[("site.yml", text)]);
    let secrets = json!([{"secret_ref": LOGIN_KEY, "name": "ssh_key"}, {"secret_ref": "vault://app/db", "name": "db"}]);
    let id = runner.submit(job.on(vec![sshd.target("web-1")]).with("/inputs/secrets", secrets));
    let result = runner.plane.result(id).await;
    assert!(
        result.exit_summary.message.contains("it was ******"),
        "{}",
        result.exit_summary.message
    );
    assert!(runner.plane.output(id).contains("******"));
    assert_clean(&runner, id);
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_47_a_canary_split_over_chunks_and_in_evidence_is_never_seen() {
    let (runner, sshd) = (Runner::start().await, Sshd::start());
    runner.put_key(&sshd.private_key);
    runner.secrets.put("app/db", "value", CANARY.as_bytes(), None).unwrap();
    let encoded = base64::engine::general_purpose::STANDARD.encode(CANARY);
    let split = format!(
        "printf 'c4n4'; sleep 0.3; printf '%s\\n' {}; printf '%s' {}; sleep 0.3; printf '%s\\n' {}; cat",
        "'ry \"quoted\" <&>'\\'' /é'",
        &encoded[..7],
        &encoded[7..]
    );
    let checks =
        json!([{"name": "ok", "capability": "web.http", "type": "command_check", "command": "cat $HOME/secrets/db"}]);
    let secrets = json!([{"secret_ref": LOGIN_KEY, "name": "ssh_key"}, {"secret_ref": "vault://app/db", "as": "stdin", "name": "in"}, {"secret_ref": "vault://app/db", "name": "db"}]);
    let job = Job::new("ssh", json!({"commands": [split], "checks": checks})).on(vec![sshd.target("web-1")]);
    let id = runner.submit(job.with("/inputs/secrets", secrets));
    let result = runner.plane.result(id).await;
    assert_eq!(
        result.status,
        ExecutionStatus::Succeeded,
        "{}",
        result.exit_summary.message
    );
    assert!(
        runner.plane.output(id).matches("******").count() >= 3,
        "{}",
        runner.plane.output(id)
    );
    let state = runner.plane.state();
    assert!(String::from_utf8_lossy(&state.attempts[&id].artifacts["check.ok.txt"]).contains("******"));
    drop(state);
    assert_clean(&runner, id);
}

#[tokio::test(flavor = "multi_thread")]
async fn field_note_48_a_short_or_common_secret_is_refused_before_anything_runs() {
    let runner = Runner::start().await;
    for (index, value) in ["true", "1", "a", "root"].into_iter().enumerate() {
        runner
            .secrets
            .put(&format!("app/s{index}"), "value", value.as_bytes(), None)
            .unwrap();
        let check = json!({"name": "ok", "capability": "web.http", "type": "command_check", "command": "true"});
        let secrets = json!([{"secret_ref": format!("vault://app/s{index}")}]);
        let job = Job::new("verification", json!({"checks": [check]})).with("/inputs/secrets", secrets);
        let result = runner.plane.result(runner.submit(job)).await;
        let told = (result.exit_summary.category, result.job_started);
        assert_eq!(told, (ExitCategory::ValidationError, Some(JobStarted::No)), "{value}");
        assert!(
            result.exit_summary.message.contains("vault://app/s"),
            "{}",
            result.exit_summary.message
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_finds_its_secrets_where_it_was_told_and_others_do_not_see_them() {
    let runner = Runner::start().await;
    runner
        .secrets
        .put("app/token", "value", b"s3cr3t-token-value", None)
        .unwrap();
    runner
        .secrets
        .put("app/file", "value", b"s3cr3t-file-value", None)
        .unwrap();
    let command = "test \"$(printenv TOKEN | wc -c)\" = 19 && test \"$(stat -c '%a %s' $HOME/secrets/conf)\" = '400 17' && \
                   ! grep -q s3cr3t[-] /proc/*/cmdline && stat -f -c %T $HOME/secrets/conf";
    let check = json!({"name": "ok", "capability": "web.http", "type": "command_check", "command": command, "expect": {"stdout_contains": "tmpfs"}});
    let secrets = json!([{"secret_ref": "vault://app/token", "as": "env", "name": "TOKEN"}, {"secret_ref": "vault://app/file", "name": "conf"}]);
    let job = Job::new("verification", json!({"checks": [check]})).with("/inputs/secrets", secrets);
    let result = runner.plane.result(runner.submit(job)).await;
    assert_eq!(
        result.status,
        ExecutionStatus::Succeeded,
        "{}",
        result.exit_summary.message
    );
}
