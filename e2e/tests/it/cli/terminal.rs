//! What moves on a terminal. Elsewhere nothing does: every other test of the commands runs them with pipes
//! and refuses a single command to a terminal in what they say.

use std::process::Command;

use e2e::{Deployment, Options, World, platform_program};

use super::pack;
use super::person::{PATIENCE, Person};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_terminal_watch_shows_what_the_running_job_says_and_how_long_it_takes() {
    let deployment = Deployment::start(&Options::default()).await;
    let _world = World::start(&deployment, 1).await;
    let ada = Person::of(&deployment, "person:ada", &["operator", "admin", "viewer"]);
    pack::publish(deployment.path(), &ada);
    ada.waits_for_the_catalog();
    let id = ada.starts(&["tried/endless", "-e", "test"]);
    let drawn = deployment.path().join("drawn");
    for (colours, no_color) in [(true, None), (false, Some("1"))] {
        let mut watching = on_a_terminal(&deployment, &ada, &["watch", &id], &drawn, no_color);
        let deadline = std::time::Instant::now() + PATIENCE;
        let moved = |text: &str| text.contains("waiting for ever") && text.matches("\x1b[J").count() > 4;
        loop {
            let text = std::fs::read_to_string(&drawn).unwrap_or_default();
            if moved(&text) {
                assert!(text.contains("running: 0 of 1 done, 1 running"), "{text:?}");
                assert_eq!(text.contains("\x1b[36m▶"), colours, "{text:?}");
                break;
            }
            assert!(std::time::Instant::now() < deadline, "nothing moves: {text:?}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        watching.kill().expect("own child");
        watching.wait().expect("own child");
    }
    let cancel = ada.types(&["cancel", &id], 0);
    cancel.tells(&["cancelled"]);
    deployment.stop().await;
}

/// Runs a command on a terminal of its own; what it draws goes into `drawn`.
fn on_a_terminal(
    deployment: &Deployment,
    ada: &Person,
    args: &[&str],
    drawn: &std::path::Path,
    no_color: Option<&str>,
) -> std::process::Child {
    std::fs::write(drawn, "").expect("own file");
    let line = format!("exec {} {}", platform_program().display(), args.join(" "));
    let mut command = Command::new("script");
    command
        .args(["--quiet", "--flush", "--return", "--command", &line])
        .arg(drawn)
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .env("PLATFORM_CONTEXT", deployment.data().join("context.toml"))
        .env("PLATFORM_TOKEN", ada.token())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null());
    match no_color {
        Some(word) => command.env("NO_COLOR", word),
        None => command.env_remove("NO_COLOR"),
    };
    command.spawn().expect("script runs")
}
