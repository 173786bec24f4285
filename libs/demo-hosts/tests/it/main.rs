//! Hosts as their users meet them: by real SSH logins, and by counting from outside.

mod rollout;

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use demo_hosts::{DATA_VOLUME, Host, HostError, Hosts, Options};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(30);

fn start(count: usize) -> (TempDir, Hosts) {
    let directory = tempfile::tempdir().unwrap();
    let hosts = Hosts::start(&Options::web(directory.path(), count)).unwrap();
    (directory, hosts)
}

fn ssh(hosts: &Hosts, host: &Host, command: &str) -> Output {
    host.ssh(&hosts.private_key, &hosts.known_hosts)
        .arg(command)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap().trim().to_owned()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn each_host_is_logged_in_to_under_its_own_name_and_address() {
    let (_directory, hosts) = start(2);
    for host in &hosts.hosts {
        assert_eq!(
            said(&ssh(&hosts, host, "hostname; whoami; pwd")),
            format!("{}\ndeploy\n/home/deploy", host.name)
        );
        assert!(said(&ssh(&hosts, host, "python3 --version")).starts_with("Python 3"));
    }
    assert_ne!(hosts.hosts[0].address, hosts.hosts[1].address);
    assert_ne!(hosts.hosts[0].host_key, hosts.hosts[1].host_key);
    hosts.stop().unwrap();
}

#[test]
fn an_unknown_host_key_or_client_key_is_refused() {
    let (directory, hosts) = start(1);
    let empty = directory.path().join("empty");
    fs::write(&empty, "").unwrap();
    let host = &hosts.hosts[0];
    assert!(
        !host
            .ssh(&hosts.private_key, &empty)
            .arg("true")
            .output()
            .unwrap()
            .status
            .success()
    );
    let foreign = directory.path().join("hosts/web-1/etc/ssh/ssh_host_ed25519_key");
    assert!(
        !host
            .ssh(&foreign, &hosts.known_hosts)
            .arg("true")
            .output()
            .unwrap()
            .status
            .success()
    );
}

#[test]
fn processes_files_and_tmp_of_one_host_are_invisible_from_another() {
    let (_directory, hosts) = start(2);
    let [first, second] = &hosts.hosts[..] else {
        panic!("two hosts")
    };
    said(&ssh(
        &hosts,
        first,
        "touch /tmp/mine /srv/mine ~/mine; setsid nohup sleep 4711 >/dev/null 2>&1 </dev/null &",
    ));
    wait_until("the sleeper runs", || first.running("4711").len() == 1);
    assert_eq!(second.running("4711"), []);
    let seen = said(&ssh(
        &hosts,
        second,
        "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls /tmp /srv ~",
    ));
    assert!(!seen.contains("sleep 4711") && !seen.contains("mine"), "{seen}");
    assert!(said(&ssh(&hosts, first, "ls /tmp /srv ~")).contains("mine"));
}

#[test]
fn what_ran_is_counted_from_outside() {
    let (_directory, hosts) = start(1);
    let host = &hosts.hosts[0];
    for _ in 0..3 {
        said(&ssh(&hosts, host, "echo 'once more'"));
    }
    assert_eq!(
        ssh(&hosts, host, "exit 7").status.code(),
        Some(7),
        "the record does not change the outcome"
    );
    let commands = host.commands().unwrap();
    assert_eq!(
        commands.iter().filter(|command| command.contains("once")).count(),
        3,
        "{commands:?}"
    );
    let marked = "env PLATFORM_ATTEMPT=abc setsid sleep 4712 >/dev/null 2>&1 </dev/null &";
    said(&ssh(&hosts, host, marked));
    wait_until("the marked sleeper runs", || {
        host.marked("PLATFORM_ATTEMPT=abc").len() == 1
    });
    assert_eq!(host.marked("PLATFORM_ATTEMPT=other"), []);
}

#[test]
fn files_travel_by_sftp() {
    let (directory, hosts) = start(1);
    let host = &hosts.hosts[0];
    let file = directory.path().join("file");
    fs::write(&file, "cargo").unwrap();
    let status = Command::new("scp")
        .args(["-q", "-F", "none", "-o", "BatchMode=yes"])
        .arg("-o")
        .arg(format!("UserKnownHostsFile={}", hosts.known_hosts.display()))
        .arg("-i")
        .arg(&hosts.private_key)
        .arg("-P")
        .arg(host.port.to_string())
        .arg(&file)
        .arg(format!("deploy@{}:arrived", host.address))
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read_to_string(host.home().join("arrived")).unwrap(), "cargo");
}

#[test]
fn a_full_disk_is_full_until_mended() {
    let (_directory, hosts) = start(1);
    let host = &hosts.hosts[0];
    host.break_disk_full().unwrap();
    let refused = ssh(&hosts, host, &format!("echo data > {DATA_VOLUME}/file"));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("No space left on device"),
        "{refused:?}"
    );
    said(&ssh(&hosts, host, "echo home is another volume > ~/file"));
    host.mend().unwrap();
    said(&ssh(&hosts, host, &format!("echo data > {DATA_VOLUME}/file")));
}

#[test]
fn a_volume_without_the_right_to_write_refuses_until_mended() {
    let (_directory, hosts) = start(1);
    let host = &hosts.hosts[0];
    said(&ssh(
        &hosts,
        host,
        &format!("mkdir {DATA_VOLUME}/app; echo old > {DATA_VOLUME}/app/file"),
    ));
    host.break_no_write().unwrap();
    for path in ["new", "app/new", "app/file"] {
        let refused = ssh(&hosts, host, &format!("echo new > {DATA_VOLUME}/{path}"));
        assert!(
            String::from_utf8_lossy(&refused.stderr).contains("Permission denied"),
            "{refused:?}"
        );
    }
    host.mend().unwrap();
    said(&ssh(&hosts, host, &format!("echo new > {DATA_VOLUME}/app/file")));
}

#[test]
fn stopping_ends_what_detached_itself() {
    let (_directory, hosts) = start(1);
    let host = &hosts.hosts[0];
    said(&ssh(
        &hosts,
        host,
        "setsid nohup sh -c 'trap \"\" TERM HUP; sleep 4713; :' >/dev/null 2>&1 </dev/null &",
    ));
    wait_until("the stubborn one runs", || !host.running("4713").is_empty());
    let pids: Vec<i32> = host.processes().iter().map(|process| process.pid).collect();
    hosts.stop().unwrap();
    for pid in pids {
        let alive = fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.contains("4713"));
        assert!(!alive, "process {pid} is still there");
    }
}

#[test]
fn two_sets_of_hosts_run_side_by_side() {
    let (_one, first) = start(1);
    let (_two, second) = start(1);
    assert_ne!(first.hosts[0].address, second.hosts[0].address);
    said(&ssh(&first, &first.hosts[0], "true"));
    said(&ssh(&second, &second.hosts[0], "true"));
}

#[test]
fn names_that_are_no_host_names_are_refused() {
    let options = Options {
        names: vec!["../escape".into()],
        ..Options::web("/nonexistent", 1)
    };
    assert!(matches!(Hosts::start(&options), Err(HostError::Name(_))));
    assert!(matches!(
        Hosts::start(&Options::web("/nonexistent", 0)),
        Err(HostError::Count(0))
    ));
}

#[test]
fn hosts_end_when_the_process_that_started_them_is_killed_outright() {
    let directory = tempfile::tempdir().unwrap();
    let mut parent = Command::new(env::current_exe().unwrap())
        .args(["--exact", "acts_as_a_parent_when_asked", "--nocapture"])
        .env("DEMO_HOSTS_TEST_DIRECTORY", directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(parent.stdout.take().unwrap());
    let mut lines = output.lines().map(Result::unwrap);
    let mut told = |what: &str| -> Vec<i32> {
        let line = lines.find(|line| line.contains(what)).unwrap();
        let pids = line.split(what).nth(1).unwrap().split(',');
        pids.map(|pid| pid.trim().parse().unwrap()).collect()
    };
    let sleeper = told("sleeper=");
    assert!(sleeper.iter().all(|pid| is_alive(*pid)));
    // Some of these end by themselves: those of the session that started the sleeper.
    let pids = told("pids=");
    assert!(sleeper.iter().all(|pid| pids.contains(pid)));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("all processes are gone", || !pids.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn acts_as_a_parent_when_asked() {
    let Some(directory) = env::var_os("DEMO_HOSTS_TEST_DIRECTORY") else {
        return;
    };
    let hosts = Hosts::start(&Options::web(directory, 1)).unwrap();
    let host = &hosts.hosts[0];
    said(&ssh(
        &hosts,
        host,
        "setsid nohup sleep 4714 >/dev/null 2>&1 </dev/null &",
    ));
    // Not the shell that starts it, whose command line holds these words too.
    let sleepers = || {
        let all = host.processes().into_iter();
        all.filter(|process| process.argv == ["sleep", "4714"])
            .collect::<Vec<_>>()
    };
    wait_until("the sleeper runs", || sleepers().len() == 1);
    for (what, processes) in [("sleeper", sleepers()), ("pids", host.processes())] {
        let pids: Vec<String> = processes.iter().map(|process| process.pid.to_string()).collect();
        println!("{what}={}", pids.join(","));
    }
    std::thread::sleep(Duration::from_secs(60));
}

fn is_alive(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z')
    })
}
