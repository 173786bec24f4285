//! Cancelling on hosts that log every command: their sshd hands the whole command to everything that a
//! session starts, in its environment, as sudo does too.

use std::time::Duration;

use contracts::{ExecutionStatus, ExitReason};
use demo_hosts::{Host, Hosts, Options};
use kernel::id::AttemptId;
use serde_json::{Value, json};

use crate::harness::{Job, Runner, ansible_directory, outputs};

struct Stage {
    runner: Runner,
    hosts: Hosts,
    _directory: tempfile::TempDir,
}

impl Stage {
    async fn set(hosts: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let hosts = Hosts::start(&Options::web(directory.path(), hosts)).unwrap();
        let runner = Runner::start_with(|config| config.ansible_directory = Some(ansible_directory())).await;
        runner.put_key(&std::fs::read_to_string(&hosts.private_key).unwrap());
        Self {
            runner,
            hosts,
            _directory: directory,
        }
    }

    fn targets(&self) -> Vec<Value> {
        let target = |host: &Host| {
            json!({
                "resource_id": format!("node/{}", host.name), "resource_type": "compute.node",
                "connection": {"address": host.address, "port": host.port, "user": host.user,
                    "host_keys": [host.host_key], "python_interpreter": "/usr/bin/python3"},
            })
        };
        self.hosts.hosts.iter().map(target).collect()
    }

    /// Waits until `count` sleepers of that name are there on every host.
    async fn until_all_sleep(&self, id: AttemptId, name: &str, count: usize) {
        while self.hosts.hosts.iter().any(|host| sleepers(host, name) != count) {
            let ended = self.runner.plane.state().attempts[&id].result.clone();
            assert!(ended.is_none(), "{ended:?}\n{}", self.runner.plane.output(id));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Cancels the attempt, and looks at what is left of it and of what it deployed.
    async fn cancel(&self, id: AttemptId, deployed: &str) {
        self.runner
            .plane
            .change(|state| state.attempts.get_mut(&id).unwrap().cancel = true);
        let result = self.runner.plane.result(id).await;
        assert_eq!(
            (result.status, result.reason),
            (ExecutionStatus::Cancelled, Some(ExitReason::Person)),
            "{:?}",
            result.outputs
        );
        assert_eq!(outputs(&result)["remote_processes"], "ended");
        for host in &self.hosts.hosts {
            let left = host.marked(&format!("PLATFORM_ATTEMPT={id}"));
            assert!(left.is_empty(), "on {}: {left:?}", host.name);
            assert_eq!(sleepers(host, deployed), 1, "on {}: {:?}", host.name, host.processes());
        }
    }
}

/// A name that is a number, and so an argument of `sleep`.
fn name() -> String {
    format!("0.{}", uuid::Uuid::now_v7().as_u128())
}

fn sleepers(host: &Host, name: &str) -> usize {
    let found = host.running(name);
    found.iter().filter(|process| process.argv[0] == "sleep").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_playbook_ends_on_every_host_with_all_it_started_but_what_it_deployed() {
    let stage = Stage::set(3).await;
    let (ended, deployed) = (name(), name());
    let text = format!(
        "- hosts: all
  gather_facts: false
  tasks:
    - name: deployed on purpose
      shell: env -u PLATFORM_ATTEMPT setsid sleep 600 {deployed} >/dev/null 2>&1 &
    - name: in the background, in a session of its own
      shell: setsid sleep 600 {ended} >/dev/null 2>&1 &
    - name: does not want to end
      shell: (trap '' TERM HUP INT; sleep 600 {ended}; sleep 600 {ended}) >/dev/null 2>&1 &
    - name: asynchronous
      command: sleep 600 {ended}
      async: 600
      poll: 0
    - name: without a module
      raw: trap '' HUP; setsid sleep 600 {ended} >/dev/null 2>&1 &
    - name: at work
      command: sleep 600 {ended}
"
    );
    let job = Job::new("ansible", json!({"playbook": "site.yml"})).content(&[("site.yml", &text)]);
    let id = stage.runner.submit(job.on(stage.targets()));
    stage.until_all_sleep(id, &ended, 5).await;
    stage.cancel(id, &deployed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_command_ends_on_every_host_with_all_it_started_but_what_it_deployed() {
    let stage = Stage::set(2).await;
    let (ended, deployed) = (name(), name());
    let commands = json!([
        format!("env -u PLATFORM_ATTEMPT setsid sleep 600 {deployed} >/dev/null 2>&1 &"),
        format!("setsid sleep 600 {ended} >/dev/null 2>&1 &"),
        format!("(trap '' TERM HUP INT; sleep 600 {ended}; sleep 600 {ended})"),
    ]);
    let id = stage
        .runner
        .submit(Job::new("ssh", json!({"commands": commands})).on(stage.targets()));
    stage.until_all_sleep(id, &ended, 2).await;
    stage.cancel(id, &deployed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_arrives_after_the_end_of_its_attempt_does_not_run() {
    let stage = Stage::set(1).await;
    let host = &stage.hosts.hosts[0];
    let text = "- hosts: all\n  gather_facts: false\n  tasks: [{command: touch /srv/ran}]\n";
    let job = Job::new("ansible", json!({"playbook": "site.yml"})).content(&[("site.yml", text)]);
    let directory = host.inside("/tmp").join(format!(".platform-{}", job.id()));
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("ended"), "").unwrap();
    let id = stage.runner.submit(job.on(stage.targets()));
    let result = stage.runner.plane.result(id).await;
    assert_eq!(result.status, ExecutionStatus::Failed);
    let told = stage.runner.plane.output(id);
    assert!(told.contains("this attempt was ended"), "{told}");
    assert!(!host.inside("/srv/ran").exists());
}
