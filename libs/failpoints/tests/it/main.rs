//! A process that passes points, started again and again with other wishes for its end. The process is
//! this test binary itself, told by a variable to play the victim.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

failpoints::register!(POINTS: "victim.before", "victim.after", "victim.never");

const ROLE: &str = "FAILPOINTS_TEST_ROLE";

#[test]
fn the_victim() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    for _ in 0..3 {
        failpoints::hit(POINTS, "victim.before");
        failpoints::hit(POINTS, "victim.after");
    }
}

fn victim(variables: &[(&str, &str)]) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_victim"]).env(ROLE, "victim");
    for variable in [failpoints::POINT, failpoints::LOG, failpoints::TRACE] {
        command.env_remove(variable);
    }
    command.envs(variables.iter().copied()).output().unwrap().status
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn without_a_wish_nothing_dies() {
    assert!(victim(&[]).success());
}

#[test]
fn the_named_hit_kills_and_leaves_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    for wish in ["victim.after", "victim.before:3"] {
        let status = victim(&[(failpoints::POINT, wish), (failpoints::LOG, log.to_str().unwrap())]);
        assert_eq!(status.signal(), Some(9), "{wish}");
    }
    assert_eq!(lines(&log), ["victim.after", "victim.before"]);
}

#[test]
fn a_point_that_is_never_reached_leaves_the_process_alive_and_no_line() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    for wish in ["victim.never", "victim.after:4"] {
        assert!(victim(&[(failpoints::POINT, wish), (failpoints::LOG, log.to_str().unwrap())]).success());
    }
    assert!(lines(&log).is_empty());
}

#[test]
fn a_trace_names_each_point_that_was_hit_once() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    assert!(victim(&[(failpoints::TRACE, trace.to_str().unwrap())]).success());
    assert_eq!(lines(&trace), ["victim.before", "victim.after"]);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "not declared")]
fn an_undeclared_point_is_a_programming_error() {
    failpoints::hit(POINTS, "victim.unknown");
}
