//! Both grades against the suite of their port, and what the sandbox alone must hold.

use std::collections::BTreeMap;
use std::ffi::OsString;

use execution_plane_ports::conformance;
use execution_plane_ports::{Isolation, Limits, Network, SandboxCommand};
use isolation_bubblewrap::{Bubblewrap, BubblewrapConfig, PlainProcess, PlainProcessConfig};
use tokio::io::AsyncReadExt;

fn unique() -> String {
    format!("t{}", uuid::Uuid::now_v7().simple())
}

async fn sandbox() -> Bubblewrap {
    Bubblewrap::probe(BubblewrapConfig::default())
        .await
        .expect("these tests need bubblewrap and user namespaces (Debian: apt-get install bubblewrap)")
}

fn command(isolation: &dyn Isolation, script: &str) -> SandboxCommand {
    let id = unique();
    SandboxCommand {
        argv: ["/bin/sh", "-c", script].into_iter().map(OsString::from).collect(),
        environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin:/usr/sbin".into())]),
        files: Vec::new(),
        mounts: Vec::new(),
        directory: isolation.work_directory(&id),
        network: Network::None,
        limits: Limits::default(),
        stdin: false,
        descriptors: Vec::new(),
        id,
    }
}

async fn told(isolation: &dyn Isolation, command: SandboxCommand) -> (String, i32) {
    let mut running = isolation.start(command).await.unwrap();
    let mut text = String::new();
    running.take_stdout().unwrap().read_to_string(&mut text).await.unwrap();
    let mut errors = String::new();
    running
        .take_stderr()
        .unwrap()
        .read_to_string(&mut errors)
        .await
        .unwrap();
    let ended = running.wait().await.unwrap();
    (text + &errors, ended.code())
}

#[tokio::test]
async fn the_sandbox_passes_the_suite_of_its_port() {
    conformance::isolation(&sandbox().await, &unique()).await;
}

#[tokio::test]
async fn a_plain_process_passes_the_suite_of_its_port() {
    let plain = PlainProcess::probe(PlainProcessConfig::default()).unwrap();
    conformance::isolation(&plain, &unique()).await;
}

#[tokio::test]
async fn a_sandbox_has_no_capability_and_gains_no_privilege() {
    let isolation = sandbox().await;
    let script = "id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs):' /proc/self/status | tr -s '\\t' ' '";
    let (text, code) = told(&isolation, command(&isolation, script)).await;
    assert_eq!(
        (text.as_str(), code),
        (
            "1000\nCapEff: 0000000000000000\nCapBnd: 0000000000000000\nNoNewPrivs: 1\n",
            0
        )
    );
}

#[tokio::test]
async fn a_sandbox_sees_neither_foreign_processes_nor_files_and_can_write_only_its_own() {
    let isolation = sandbox().await;
    let here = std::env::current_dir().unwrap();
    let script = format!(
        "ls -d /proc/[0-9]* | wc -l; ls -A /root /home /var {} 2>/dev/null; cat /etc/shadow 2>/dev/null; \
         for place in / /usr /etc /bin; do touch $place/x 2>/dev/null && echo wrote $place; done; touch /tmp/x x && echo fine",
        here.display()
    );
    let (text, _) = told(&isolation, command(&isolation, &script)).await;
    let mut lines = text.lines();
    assert!(lines.next().unwrap().trim().parse::<u32>().unwrap() < 6, "{text}");
    assert_eq!(lines.collect::<Vec<_>>(), ["fine"], "{text}");
}

#[tokio::test]
async fn a_sandbox_without_network_has_only_its_loopback() {
    let isolation = sandbox().await;
    let (text, _) = told(
        &isolation,
        command(&isolation, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"),
    )
    .await;
    assert_eq!(text, "lo\n");
}

#[tokio::test]
async fn a_bomb_of_processes_and_a_glutton_end_at_their_limits() {
    let isolation = sandbox().await;
    let report = isolation.report();
    let holds = |what: &str| report.holds.iter().any(|line| line.contains(what));
    if holds("limit on processes by control group") {
        let mut bomb = command(
            &isolation,
            "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 60 & done; echo all",
        );
        bomb.limits.processes = Some(6);
        let (text, code) = told(&isolation, bomb).await;
        assert!(code != 0 && !text.contains("all"), "{text}");
    } else {
        assert!(report.lacks.iter().any(|line| line.contains("no limit on processes")));
    }
    let mut glutton = command(&isolation, "head -c 200000000 /dev/zero | tail");
    glutton.limits.memory_bytes = Some(64 << 20);
    let (_, code) = told(&isolation, glutton).await;
    assert_ne!(code, 0);
}

#[tokio::test]
async fn a_descriptor_reaches_the_command_under_its_number() {
    let isolation = sandbox().await;
    let (reader, writer) = std::io::pipe().unwrap();
    let mut with_descriptor = command(&isolation, "echo event >&3; ls /proc/self/fd");
    with_descriptor.descriptors.push((writer.into(), 3));
    let (text, _) = told(&isolation, with_descriptor).await;
    let numbers: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(numbers.contains(&3), "{text}");
    assert!(
        !numbers.iter().any(|number| (40..60).contains(number)),
        "the sandbox's own descriptors are closed: {text}"
    );
    let mut events = String::new();
    let mut receiver = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into()).unwrap();
    receiver.read_to_string(&mut events).await.unwrap();
    assert_eq!(events, "event\n");
}

#[tokio::test]
async fn a_path_that_leaves_the_work_directory_is_refused() {
    let isolation = sandbox().await;
    for path in ["../x", "/etc/x", "a/../../x", ""] {
        let mut bad = command(&isolation, "true");
        bad.files.push(execution_plane_ports::JobFile {
            path: path.to_owned(),
            content: execution_plane_ports::FileContent::Plain(Vec::new()),
            mode: 0o400,
        });
        assert!(isolation.start(bad).await.is_err(), "{path:?}");
    }
}
