//! `platform up`: the whole in one process, until it is asked to end.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use child_process::{DeathSignal, KeptChild, Launch};
use e2e::platform_program;
use rustix::process::Signal;
use serde_json::Value;

use super::person::PATIENCE;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn up_says_where_everything_is_answers_commands_and_ends_when_asked() {
    let directory = tempfile::Builder::new()
        .prefix("platform-up-")
        .tempdir()
        .expect("a temporary directory");
    // PostgreSQL's lesser account passes through here.
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711)).expect("own directory");
    let data = directory.path().join("data");
    for signal in [Signal::INT, Signal::TERM] {
        let said = directory.path().join("said");
        let launch = Launch::new(platform_program(), DeathSignal::Terminate)
            .args(["up", "--port", "0", "-o", "json", "--data"])
            .arg(&data)
            .stdout(File::create(&said).expect("own file"));
        let up = launch.spawn().expect("the program runs");
        let ready = ready_line(&said, &up);
        assert_eq!(ready["ready"], true);
        let context = ready["context"].as_str().expect("a context");
        assert!(Path::new(ready["token_file"].as_str().expect("a token")).is_file());
        for (kind, word) in [("resource-types", "compute.node"), ("operations", "no operations")] {
            let got = Command::new(platform_program())
                .args(["get", kind, "--context", context])
                .env_remove("PLATFORM_TOKEN")
                .output()
                .expect("the program runs");
            let text = String::from_utf8_lossy(&got.stdout).into_owned();
            assert!(got.status.success() && text.contains(word), "{kind}: {text}");
        }
        up.signal(signal).expect("own child");
        let ended = up.exited().await.expect("it ended");
        assert_eq!(ended.code(), Some(0), "asked to end by {signal:?}");
    }
}

fn ready_line(said: &Path, up: &KeptChild) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(said).expect("own file");
        if let Some((first, _)) = text.split_once('\n') {
            return serde_json::from_str(first).expect("JSON");
        }
        assert!(up.exit_status().is_none(), "it ended while starting");
        assert!(Instant::now() < deadline, "it is not ready");
        std::thread::sleep(Duration::from_millis(20));
    }
}
