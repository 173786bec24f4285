//! The process that started the server is killed outright: the server ends, and the next process
//! starts on the same data at once.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use postgres_embedded::{Config, Server};

use crate::roots::{processes_in, root};

const PROGRAM: &str = env!("CARGO_BIN_EXE_postgres-embedded");

fn start_in_another_process(root: &Path) -> Child {
    let mut parent = Command::new(PROGRAM).arg(root).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with("READY "), "{line:?}");
    parent
}

#[test]
fn the_server_dies_with_its_killed_parent() {
    let root = root();
    let data = root.path().canonicalize().unwrap().join("data");
    let mut parent = start_in_another_process(root.path());
    assert_ne!(processes_in(&data), Vec::<i32>::new());
    parent.kill().unwrap();
    parent.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !processes_in(&data).is_empty() {
        assert!(Instant::now() < deadline, "the server outlived its parent");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn the_next_process_need_not_wait_for_what_the_killed_one_left() {
    let root = root();
    for _ in 0..2 {
        let mut parent = start_in_another_process(root.path());
        parent.kill().unwrap();
        parent.wait().unwrap();
    }
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    server.stop().await.unwrap();
}

#[test]
fn a_command_gets_the_url_and_its_exit_status_is_passed_on() {
    let root = root();
    let data = root.path().canonicalize().unwrap().join("data");
    let script = r#"case "$DATABASE" in postgres://postgres:*@127.0.0.1:*/postgres) exit 7;; esac; exit 1"#;
    let status = Command::new(PROGRAM)
        .arg(root.path())
        .args(["--env", "DATABASE", "--", "sh", "-c", script])
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
    assert_eq!(processes_in(&data), Vec::<i32>::new());
}

#[test]
fn an_order_to_end_ends_the_command_and_the_server() {
    let root = root();
    let data = root.path().canonicalize().unwrap().join("data");
    let mut parent = start_in_another_process(root.path());
    let pid = rustix::process::Pid::from_child(&parent);
    rustix::process::kill_process(pid, child_process::Signal::TERM).unwrap();
    assert!(parent.wait().unwrap().success());
    assert_eq!(processes_in(&data), Vec::<i32>::new());
}
