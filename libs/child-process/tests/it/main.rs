//! Real processes: a child ends with its parent, whatever ended the parent.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use child_process::{Account, DeathSignal, KeptChild, Launch, LaunchError, Signal};

const LIMIT: Duration = Duration::from_secs(20);

fn sleeper() -> Launch {
    Launch::new("sleep", DeathSignal::Kill).arg("300")
}

#[test]
fn reports_how_the_child_ended() {
    let child = Launch::new("sh", DeathSignal::Kill)
        .args(["-c", "exit 7"])
        .spawn()
        .unwrap();
    assert_eq!(child.wait_for(LIMIT).unwrap().code(), Some(7));
}

#[test]
fn passes_arguments_through_byte_for_byte() {
    let odd = "a b\t'c' \"d\" $HOME\n*";
    let child = Launch::new("printf", DeathSignal::Kill)
        .args(["%s", odd])
        .stdout(Stdio::piped())
        .spawn()
        .map(read_all)
        .unwrap();
    assert_eq!(child, odd);
}

fn read_all(mut child: KeptChild) -> String {
    std::io::read_to_string(child.stdout.take().unwrap()).unwrap()
}

#[test]
fn names_a_program_that_is_missing() {
    let error = Launch::new("no-such-program-here", DeathSignal::Kill)
        .spawn()
        .unwrap_err();
    assert!(matches!(error, LaunchError::NotFound(path) if path.ends_with("no-such-program-here")));
}

#[test]
fn signals_the_child_and_ends_it_on_drop() {
    let child = sleeper().spawn().unwrap();
    child.signal(Signal::TERM).unwrap();
    assert!(child.wait_for(LIMIT).is_some());
    child.signal(Signal::TERM).unwrap();

    let dropped = sleeper().spawn().unwrap();
    let pid = dropped.pid();
    drop(dropped);
    wait_until_gone(pid);
}

#[tokio::test]
async fn can_be_awaited() {
    let child = Launch::new("true", DeathSignal::Kill).spawn().unwrap();
    assert!(child.exited().await.unwrap().success());
}

#[test]
fn outlives_the_thread_that_asked_for_it() {
    let child = std::thread::spawn(|| sleeper().spawn().unwrap()).join().unwrap();
    assert_eq!(child.wait_for(Duration::from_millis(200)), None);
}

#[test]
fn root_can_run_a_child_as_a_lesser_account_that_still_dies_with_it() {
    if !Account::current().is_root() {
        // An ordinary user cannot change accounts: the child simply runs as that user.
        let child = Launch::new("id", DeathSignal::Kill)
            .arg("-u")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        assert_eq!(read_all(child).trim(), Account::current().uid.to_string());
        return;
    }
    let nobody = Account::first_of(&["nobody"]).unwrap();
    let child = Launch::new("id", DeathSignal::Kill)
        .arg("-u")
        .account(nobody)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(read_all(child).trim(), nobody.uid.to_string());
    assert_ends_with_its_parent("nobody");
}

#[test]
fn the_child_ends_when_its_parent_is_killed_outright() {
    assert_ends_with_its_parent("self");
}

/// Starts this test binary again as the parent, kills it with SIGKILL and waits for the grandchild.
fn assert_ends_with_its_parent(account: &str) {
    let mut parent = Command::new(env::current_exe().unwrap())
        .args(["--exact", "acts_as_a_parent_when_asked", "--nocapture"])
        .env("CHILD_PROCESS_TEST_PARENT", account)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(parent.stdout.take().unwrap());
    let line = output
        .lines()
        .map(Result::unwrap)
        .find(|line| line.contains("child="))
        .unwrap();
    let pid = line.split("child=").nth(1).unwrap().trim().parse().unwrap();
    assert!(is_alive(pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until_gone(pid);
}

#[test]
fn acts_as_a_parent_when_asked() {
    let Ok(account) = env::var("CHILD_PROCESS_TEST_PARENT") else {
        return;
    };
    let mut launch = sleeper();
    if account != "self" {
        launch = launch.account(Account::first_of(&[&account]).unwrap());
    }
    let child = launch.spawn().unwrap();
    println!("child={}", child.pid());
    child.wait_for(Duration::from_secs(60));
}

fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z')
    })
}

fn wait_until_gone(pid: u32) {
    let deadline = std::time::Instant::now() + LIMIT;
    while is_alive(pid) {
        assert!(std::time::Instant::now() < deadline, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}
