//! What a kill test may rely on, shown on a process of its own.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

/// The example `walk`, which cargo builds beside this test.
fn walker() -> PathBuf {
    let mut path = std::env::current_exe().expect("a test knows where it is");
    path.pop();
    path.pop();
    path.join("examples").join("walk")
}

fn walk(armed: Option<&str>, argument: &str) -> (ExitStatus, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mut command = Command::new(walker());
    command
        .arg(argument)
        .env_remove(failpoints::ARM)
        .env(failpoints::LOG, &log);
    if let Some(armed) = armed {
        command.env(failpoints::ARM, armed);
    }
    let status = command.output().unwrap().status;
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    // Without the process id, which differs.
    let lines = text.lines().map(|line| line.rsplit_once(' ').unwrap().0.to_owned());
    (status, lines.collect())
}

#[test]
fn nothing_dies_and_nothing_is_written_unless_armed() {
    let (status, log) = walk(None, "");
    assert!(status.success());
    assert!(log.is_empty());
}

#[test]
fn the_armed_one_kills_the_process_at_its_first_time() {
    let (status, log) = walk(Some("walk.step.after"), "");
    assert_eq!(status.signal(), Some(9));
    assert_eq!(log, ["killed walk.step.after 1"]);
}

#[test]
fn the_nth_time_can_be_asked_for() {
    let (status, log) = walk(Some("walk.step.before:3"), "");
    assert_eq!(status.signal(), Some(9));
    assert_eq!(log, ["killed walk.step.before 3"]);
    let (status, log) = walk(Some("walk.step.before:4"), "");
    assert!(status.success(), "it is reached three times only");
    assert!(log.is_empty(), "so a test sees that it was not hit");
}

#[test]
fn tracing_tells_each_name_once_and_kills_nothing() {
    let (status, log) = walk(Some("trace"), "");
    assert!(status.success());
    assert_eq!(log, ["reached walk.step.before 1", "reached walk.step.after 1"]);
}

#[test]
fn a_name_that_its_service_did_not_declare_is_refused() {
    let (status, _) = walk(None, "stray");
    assert_eq!(status.code(), Some(101));
}

#[test]
fn a_count_that_is_no_number_is_refused_rather_than_taken_for_never() {
    let (status, _) = walk(Some("walk.step.before:often"), "");
    assert_eq!(status.code(), Some(101));
}

#[test]
fn a_list_can_be_held_against_the_source() {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    let found = failpoints::names_in_source(&examples).unwrap();
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, ["walk.step.after", "walk.step.before", "walk.step.sideways"]);
}
