//! `kill -9` of the server, of its backends, and what is found afterwards.

use std::{fs, time::Duration};

use child_process::Signal;
use postgres_embedded::{Config, Server, State};
use rustix::process::{Pid, kill_process};
use tokio::{sync::watch, time::timeout};

use crate::roots::{connect, processes_in, root};

const LIMIT: Duration = Duration::from_secs(60);

fn kill(pid: i32) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

fn pid_of(state: &State) -> Option<u32> {
    match state {
        State::Ready { pid } => Some(*pid),
        _ => None,
    }
}

async fn wait_for(state: &mut watch::Receiver<State>, wanted: impl Fn(&State) -> bool) {
    timeout(LIMIT, state.wait_for(wanted)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_killed_server_comes_back_with_everything_committed() {
    let root = root();
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    let client = connect(&server.url("postgres")).await;
    client
        .batch_execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
        .await
        .unwrap();
    let mut state = server.state();
    for _ in 0..2 {
        let old = pid_of(&state.borrow_and_update()).unwrap();
        kill(old.cast_signed());
        wait_for(&mut state, |now| pid_of(now).is_some_and(|pid| pid != old)).await;
        let client = connect(&server.url("postgres")).await;
        let count: i64 = client.query_one("SELECT count(*) FROM kept", &[]).await.unwrap().get(0);
        assert_eq!(count, 1000);
    }
    server.stop().await.unwrap();
}

#[tokio::test]
async fn backends_that_outlive_a_killed_server_are_ended_before_the_next() {
    let root = root();
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    let busy = connect(&server.url("postgres")).await;
    let running = tokio::spawn(async move { busy.batch_execute("SELECT pg_sleep(600)").await });
    let mut state = server.state();
    let old = pid_of(&state.borrow_and_update()).unwrap();
    let before = processes_in(server.data_directory());
    kill(old.cast_signed());
    assert!(timeout(LIMIT, running).await.unwrap().unwrap().is_err());
    wait_for(&mut state, |now| pid_of(now).is_some_and(|pid| pid != old)).await;
    let after = processes_in(server.data_directory());
    assert!(before.iter().all(|pid| !after.contains(pid)), "{before:?} {after:?}");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_killed_backend_does_not_end_the_server() {
    let root = root();
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    let client = connect(&server.url("postgres")).await;
    let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let state = server.state();
    let pid = pid_of(&state.borrow()).unwrap();
    kill(backend);
    // PostgreSQL resets all its backends then and recovers by itself; connections come back.
    let back = async {
        while tokio_postgres::connect(&server.url("postgres"), tokio_postgres::NoTls)
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, back).await.unwrap();
    assert_eq!(pid_of(&state.borrow()), Some(pid));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_pid_file_whose_number_now_means_another_process_is_no_obstacle() {
    let root = root();
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    let pid_file = server.data_directory().join("postmaster.pid");
    let text = fs::read_to_string(&pid_file).unwrap();
    server.stop().await.unwrap();
    let rest = text.split_once('\n').unwrap().1;
    fs::write(&pid_file, format!("{}\n{rest}", std::process::id())).unwrap();
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    server.stop().await.unwrap();
}
