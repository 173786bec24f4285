//! Start, use, stop, start again.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

use child_process::Account;
use postgres_embedded::{Config, Error, Listen, Server, State};

use crate::roots::{connect, processes_in, root, setting};

#[tokio::test]
async fn starts_stops_and_finds_its_data_again() {
    let root = root();
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    let client = connect(&server.url("postgres")).await;
    client
        .batch_execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (42)")
        .await
        .unwrap();
    let mut state = server.state();
    let data = server.data_directory().to_owned();
    server.stop().await.unwrap();
    assert_eq!(*state.borrow_and_update(), State::Stopped);
    assert_eq!(processes_in(&data), Vec::<i32>::new());
    assert!(!data.join("postmaster.pid").exists());

    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    let client = connect(&server.url("postgres")).await;
    let kept: i32 = client.query_one("SELECT n FROM kept", &[]).await.unwrap().get(0);
    assert_eq!(kept, 42);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn is_private_checksummed_and_speaks_utf8() {
    let root = root();
    let server = Server::start(Config::new(root.path())).await.unwrap();
    let client = connect(&server.url("postgres")).await;
    assert_eq!(setting(&client, "listen_addresses").await, "");
    assert_eq!(setting(&client, "data_checksums").await, "on");
    assert_eq!(setting(&client, "server_encoding").await, "UTF8");
    assert_eq!(setting(&client, "fsync").await, "on");
    assert_eq!(setting(&client, "synchronous_commit").await, "on");
    let collation: String = client
        .query_one(
            "SELECT datcollate::text FROM pg_database WHERE datname = 'postgres'",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(collation, "C.UTF-8");

    let password = fs::metadata(server.password_file()).unwrap();
    assert_eq!(password.mode() & 0o777, 0o600);
    assert_eq!(password.uid(), Account::current().uid);
    let pid = match *server.state().borrow() {
        State::Ready { pid } => pid,
        ref other => panic!("{other:?}"),
    };
    assert_ne!(fs::metadata(format!("/proc/{pid}")).unwrap().uid(), 0);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn the_password_is_asked_for_and_shown_nowhere() {
    let root = root();
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    let password = fs::read_to_string(server.password_file()).unwrap();
    let wrong = server.url("postgres").replace(password.trim(), "wrong");
    assert!(tokio_postgres::connect(&wrong, tokio_postgres::NoTls).await.is_err());

    let client = connect(&server.url("postgres")).await;
    let secret = "a-canary-in-a-failing-statement";
    assert!(
        client
            .batch_execute(&format!("ALTER ROLE nobody_here PASSWORD '{secret}'"))
            .await
            .is_err()
    );
    let log = fs::read_to_string(server.log_file()).unwrap();
    assert!(!log.contains(secret) && !log.contains(password.trim()));
    assert!(!format!("{server:?}").contains(password.trim()));
    for pid in processes_in(server.data_directory()) {
        let shown = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!shown.contains(password.trim()));
    }
    server.stop().await.unwrap();
}

#[tokio::test]
async fn listens_on_a_loopback_port_when_asked() {
    let root = root();
    let config = Config {
        listen: Listen::AnyLoopbackPort,
        ..Config::for_tests(root.path())
    };
    let server = Server::start(config).await.unwrap();
    let client = connect(&server.loopback_url("postgres").unwrap()).await;
    assert_eq!(setting(&client, "port").await, server.port().to_string());
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_long_path_to_the_data_is_no_obstacle() {
    let root = root();
    let deep = root.path().join("a-long-directory-name/".repeat(6)).join("postgres");
    fs::create_dir_all(&deep).unwrap();
    let server = Server::start(Config::for_tests(&deep)).await.unwrap();
    let sockets = server.socket_directory().to_owned();
    connect(&server.url("postgres")).await;
    server.stop().await.unwrap();
    assert!(!sockets.exists(), "the short socket directory is removed again");
}

#[tokio::test]
async fn a_second_server_on_the_same_data_is_refused() {
    let root = root();
    let first = Server::start(Config::for_tests(root.path())).await.unwrap();
    assert!(matches!(
        Server::start(Config::for_tests(root.path())).await,
        Err(Error::InUse(_))
    ));
    first.stop().await.unwrap();
}

#[tokio::test]
async fn a_bad_setting_is_told_in_the_servers_own_words() {
    let root = root();
    let config = Config {
        settings: vec![("no_such_setting".into(), "1".into())],
        ..Config::for_tests(root.path())
    };
    let error = Server::start(config).await.unwrap_err().to_string();
    assert!(error.contains("no_such_setting"), "{error}");
}

#[tokio::test]
async fn data_without_its_password_is_not_touched() {
    let root = root();
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    let password: PathBuf = server.password_file().to_owned();
    server.stop().await.unwrap();
    fs::remove_file(&password).unwrap();
    let error = Server::start(Config::for_tests(root.path())).await.unwrap_err();
    assert!(matches!(error, Error::PasswordLost { .. }), "{error}");
    fs::write(&password, "0123").unwrap();
    let error = Server::start(Config::for_tests(root.path())).await.unwrap_err();
    assert!(matches!(error, Error::PasswordRefused { .. }), "{error}");
}

#[tokio::test]
async fn a_start_cut_off_in_the_middle_of_initdb_is_repeated() {
    let root = root();
    fs::create_dir(root.path().join("data.new")).unwrap();
    fs::write(root.path().join("data.new/PG_VERSION"), "15").unwrap();
    let server = Server::start(Config::for_tests(root.path())).await.unwrap();
    connect(&server.url("postgres")).await;
    server.stop().await.unwrap();
}
