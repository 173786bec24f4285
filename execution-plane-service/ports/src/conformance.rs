//! The suites that every adapter of a port must pass, embedded twin and production part alike
//! (feature `conformance`; meant for the adapters' tests, so these functions panic on a breach).

use std::collections::BTreeMap;
use std::ffi::OsString;

use async_trait::async_trait;
use contracts::SecretRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::isolation::{Ended, FileContent, Isolation, JobFile, Limits, Network, Running, SandboxCommand};
use crate::secret_store::{SecretError, SecretStore, SecretValue};

/// What the secret suite needs of a store besides reading: a way to prepare it.
#[async_trait]
pub trait SecretFixture {
    fn store(&self) -> &dyn SecretStore;
    /// Writes a field; `expired` makes its time to live end in the past.
    async fn put(&self, mount: &str, path: &str, field: &str, value: &[u8], expired: bool);
    /// Locks the store.
    async fn seal(&self);
}

/// Checks a [`SecretStore`]: values byte for byte, every failure told apart, none with a value in it.
///
/// # Panics
/// On every breach.
pub async fn secret_store(fixture: &dyn SecretFixture) {
    let canary: &[u8] = b"canary-\x00\xff-line1\nline2 \"quoted\" {{ braces }}";
    fixture.put("ssh", "prod/web", "private_key", canary, false).await;
    fixture.put("ssh", "prod/web", "value", b"default-field", false).await;
    fixture.put("ssh", "prod/old", "value", b"canary-expired", true).await;
    let store = fixture.store();
    let get = async |text: &str| {
        store
            .resolve(&text.parse::<SecretRef>().expect("a valid reference"))
            .await
    };

    assert_eq!(
        get("vault://ssh/prod/web#private_key")
            .await
            .expect("resolves")
            .expose(),
        canary
    );
    assert_eq!(
        get("vault://ssh/prod/web").await.expect("resolves").expose(),
        b"default-field"
    );
    let failures = [
        get("vault://ssh/prod/none").await.expect_err("missing path"),
        get("vault://other/prod/web").await.expect_err("missing mount"),
        get("vault://ssh/prod/web#nothing").await.expect_err("missing field"),
        get("vault://ssh/prod/old").await.expect_err("expired"),
    ];
    assert!(matches!(
        failures[0],
        SecretError::PathMissing { .. } | SecretError::Forbidden { .. }
    ));
    assert!(matches!(
        failures[1],
        SecretError::PathMissing { .. } | SecretError::Forbidden { .. }
    ));
    assert!(matches!(failures[2], SecretError::FieldMissing { .. }));
    assert!(matches!(failures[3], SecretError::Expired { .. }));
    fixture.seal().await;
    let sealed = get("vault://ssh/prod/web").await.expect_err("sealed");
    assert!(matches!(sealed, SecretError::Sealed { .. }), "{sealed:?}");
    for error in failures.iter().chain([&sealed]) {
        let told = format!("{error} {error:?}");
        assert!(!told.contains("canary") && !told.contains("default-field"), "{told}");
    }
}

fn command(isolation: &dyn Isolation, id: &str, script: &str) -> SandboxCommand {
    SandboxCommand {
        id: id.to_owned(),
        argv: ["/bin/sh", "-c", script].into_iter().map(OsString::from).collect(),
        environment: BTreeMap::from([
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("PLATFORM_ATTEMPT".into(), id.into()),
        ]),
        files: Vec::new(),
        mounts: Vec::new(),
        directory: isolation.work_directory(id),
        network: Network::None,
        limits: Limits::default(),
        stdin: false,
        descriptors: Vec::new(),
    }
}

async fn output(running: &mut Box<dyn Running>) -> String {
    let mut text = String::new();
    let mut stdout = running.take_stdout().expect("stdout is a pipe");
    stdout.read_to_string(&mut text).await.expect("stdout is readable");
    text
}

/// Whether any process of the machine carries the mark in its environment.
fn marked_processes(mark: &str) -> usize {
    let wanted = format!("PLATFORM_ATTEMPT={mark}");
    let carries = |entry: &std::fs::DirEntry| {
        std::fs::read(entry.path().join("environ"))
            .is_ok_and(|environ| environ.split(|&b| b == 0).any(|pair| pair == wanted.as_bytes()))
    };
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter(carries)
        .count()
}

/// Checks an [`Isolation`]: environment, files, descriptors, exit codes, and that nothing of a
/// command outlives it.
///
/// # Panics
/// On every breach.
pub async fn isolation(isolation: &dyn Isolation, unique: &str) {
    environment_and_codes(isolation, unique).await;
    files_and_stdin(isolation, unique).await;
    nothing_outlives(isolation, unique).await;
}

async fn environment_and_codes(isolation: &dyn Isolation, unique: &str) {
    let id = format!("{unique}-env");
    let mut running = isolation
        .start(command(isolation, &id, "env | sort | cut -d= -f1; exit 7"))
        .await
        .expect("starts");
    let names = output(&mut running).await;
    assert_eq!(running.wait().await.expect("ends"), Ended::Exited(7));
    for name in names.lines() {
        assert!(
            [
                "PATH",
                "PLATFORM_ATTEMPT",
                "PLATFORM_COMMAND",
                "PWD",
                "SHLVL",
                "_",
                "OLDPWD"
            ]
            .contains(&name),
            "inherited {name}"
        );
    }
    let mut running = isolation
        .start(command(isolation, &id, "kill -KILL $$"))
        .await
        .expect("starts");
    assert_eq!(running.wait().await.expect("ends").code(), 137);
    let mut missing = command(isolation, &id, "");
    missing.argv = vec!["/no/such/program".into()];
    assert!(
        isolation.start(missing).await.is_err(),
        "a missing program is refused at start"
    );
}

async fn files_and_stdin(isolation: &dyn Isolation, unique: &str) {
    let id = format!("{unique}-files");
    let mut with_files = command(
        isolation,
        &id,
        "stat -c '%a' keys/k; cat keys/k; cat; echo x >/usr/x 2>/dev/null && echo wrote",
    );
    with_files.stdin = true;
    with_files.files.push(JobFile {
        path: "keys/k".to_owned(),
        content: FileContent::Secret(SecretValue::from("by file\n")),
        mode: 0o400,
    });
    let mut running = isolation.start(with_files).await.expect("starts");
    let mut stdin = running.take_stdin().expect("stdin was asked for");
    stdin.write_all(b"by stdin\n").await.expect("stdin takes bytes");
    drop(stdin);
    let told = output(&mut running).await;
    running.wait().await.expect("ends");
    assert!(told.starts_with("400\nby file\nby stdin\n"), "{told:?}");
}

async fn nothing_outlives(isolation: &dyn Isolation, unique: &str) {
    let stubborn =
        "trap '' TERM; (setsid sh -c \"trap '' TERM; sleep 600; sleep 600\" & ) ; echo up; sleep 600; sleep 600";
    let id = format!("{unique}-kill");
    let mut running = isolation
        .start(command(isolation, &id, stubborn))
        .await
        .expect("starts");
    let mut stdout = running.take_stdout().expect("stdout is a pipe");
    let mut first = [0; 3];
    stdout.read_exact(&mut first).await.expect("the command is up");
    running.terminate();
    assert!(marked_processes(&id) > 0, "TERM is ignored by these");
    running.kill().await;
    assert_eq!(marked_processes(&id), 0, "kill returned, yet something runs");

    let id = format!("{unique}-left");
    let leaves = "(setsid sleep 600 >/dev/null 2>&1 &); exit 0";
    let mut running = isolation.start(command(isolation, &id, leaves)).await.expect("starts");
    assert_eq!(running.wait().await.expect("ends"), Ended::Exited(0));
    assert_eq!(marked_processes(&id), 0, "wait returned, yet something was left");
}
