//! The content of the pack `web-rollout`, run by Ansible itself against real hosts.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use demo_hosts::{DATA_VOLUME, Host, Hosts};

use crate::{said, ssh, start};

const PORT: u16 = 8080;
const MARK: &str = "PLATFORM_ATTEMPT=an-attempt";

fn playbook() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/web-rollout/content/site.yml")
}

/// The interpreter carries the mark of an attempt, as everything does that the platform starts.
fn mark_what_runs_on(host: &Host) {
    let wrapper = host.home().join("marked-python");
    std::fs::write(
        &wrapper,
        format!("#!/bin/sh\nexec env {MARK} /usr/bin/python3 \"$@\"\n"),
    )
    .unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn inventory(hosts: &Hosts) -> String {
    let line = |host: &Host| {
        format!(
            "{} ansible_host={} ansible_port={} ansible_user={} ansible_ssh_private_key_file={} \
             ansible_ssh_common_args='-F none -o UserKnownHostsFile={}' \
             ansible_python_interpreter='/home/deploy/marked-python'\n",
            host.name,
            host.address,
            host.port,
            host.user,
            hosts.private_key.display(),
            hosts.known_hosts.display(),
        )
    };
    hosts.hosts.iter().map(line).collect()
}

fn roll_out(directory: &Path, hosts: &Hosts, message: &str) -> Output {
    let inventory_file = directory.join("inventory");
    std::fs::write(&inventory_file, inventory(hosts)).unwrap();
    hosts.hosts.iter().for_each(mark_what_runs_on);
    let variables = serde_json::json!({
        "bind_address": hosts.hosts[0].address.to_string(),
        "http_port": PORT,
        "site_title": "A <title>",
        "site_message": message,
        "app_dir": format!("{DATA_VOLUME}/site"),
    });
    Command::new("ansible-playbook")
        .arg("-i")
        .arg(&inventory_file)
        .arg("-e")
        .arg(variables.to_string())
        .arg(playbook())
        .env("ANSIBLE_LOCAL_TEMP", directory.join("ansible"))
        .env("ANSIBLE_NOCOLOR", "1")
        .env("ANSIBLE_PIPELINING", "1")
        .output()
        .expect("ansible-playbook is installed by scripts/setup")
}

fn recap(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .rev()
        .find(|line| line.contains("ok="))
        .unwrap_or_default()
        .to_owned()
}

fn get(host: &Host, path: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect((host.address, PORT)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{head}");
    body.to_owned()
}

fn services(host: &Host) -> Vec<i32> {
    host.running("./serve.py").iter().map(|process| process.pid).collect()
}

#[test]
fn the_site_is_rolled_out_once_changed_when_told_and_left_alone_else() {
    let (directory, hosts) = start(1);
    let host = &hosts.hosts[0];

    let first = roll_out(directory.path(), &hosts, "one & \"only\" <message>");
    assert!(first.status.success(), "{first:?}");
    assert!(get(host, "/", "*/*").contains("one & \"only\" <message>"));
    assert!(get(host, "/", "text/html").contains("&lt;message&gt;"));
    let before = services(host);
    assert_eq!(before.len(), 1);

    let again = roll_out(directory.path(), &hosts, "one & \"only\" <message>");
    assert!(
        recap(&again).contains("changed=0") && recap(&again).contains("failed=0"),
        "{}",
        recap(&again)
    );
    assert_eq!(
        services(host),
        before,
        "nothing changed, so the same process still serves"
    );

    let changed = roll_out(directory.path(), &hosts, "another");
    assert!(changed.status.success(), "{changed:?}");
    assert!(get(host, "/", "*/*").contains("another"));
    let after = services(host);
    assert!(after.len() == 1 && after != before, "{before:?} {after:?}");

    assert_eq!(
        host.marked(MARK),
        [],
        "what is deployed on purpose does not carry the attempt's mark"
    );
}

#[test]
fn a_service_that_died_is_brought_up_again() {
    let (directory, hosts) = start(1);
    let host = &hosts.hosts[0];
    assert!(roll_out(directory.path(), &hosts, "here").status.success());
    said(&ssh(&hosts, host, "pkill -9 -f ./serve.py"));
    let again = roll_out(directory.path(), &hosts, "here");
    assert!(again.status.success(), "{again:?}");
    assert_eq!(services(host).len(), 1);
}

#[test]
fn a_host_that_cannot_be_written_to_fails_truthfully_and_succeeds_once_mended() {
    let (directory, hosts) = start(1);
    let host = &hosts.hosts[0];
    for (reason, make_fault) in [
        ("Permission denied", Host::break_no_write as fn(&Host) -> _),
        ("No space left on device", Host::break_disk_full),
    ] {
        make_fault(host).unwrap();
        let output = roll_out(directory.path(), &hosts, "never");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && text.contains(reason), "{text}");
        assert!(
            recap(&output).contains("unreachable=0") && recap(&output).contains("failed=1"),
            "{}",
            recap(&output)
        );
        assert_eq!(services(host), Vec::<i32>::new());
        host.mend().unwrap();
    }
    let mended = roll_out(directory.path(), &hosts, "at last");
    assert!(mended.status.success(), "{mended:?}");
    assert!(get(host, "/", "*/*").contains("at last"));
}

#[test]
fn a_port_that_is_taken_is_told_with_the_services_own_words() {
    let (directory, hosts) = start(1);
    let _taken = std::net::TcpListener::bind((hosts.hosts[0].address, PORT)).unwrap();
    let output = roll_out(directory.path(), &hosts, "nowhere");
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("Address already in use"),
        "{output:?}"
    );
}
