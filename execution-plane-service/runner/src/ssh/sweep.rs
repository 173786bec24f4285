//! Ending what an attempt left on its targets.
//!
//! The sweep puts a tombstone into the attempt's directory, then signals every process that carries
//! the mark (TERM, later KILL) until none is found. Only "looked and found none" counts as ended.
//!
//! To carry the mark is to have it as a variable of its own. A mention within another's value is not
//! enough: sshd under a forced command (`SSH_ORIGINAL_COMMAND`) and sudo (`SUDO_COMMAND`) tell the
//! whole command to all that it starts. That is so of the sweep itself, which would end itself, and of
//! services that a job deployed, which would end with it.

use std::time::Duration;

use futures::StreamExt;
use kernel::ResourceId;

use super::access::Access;
use super::client::Remote;
use super::log::RemoteEnd;
use super::quote;
use super::wrapper::directory;
use crate::jobs::RemoteProcesses;
use crate::jobs::context::JobContext;
use crate::jobs::execute::Shown;

/// Longest time for one target.
const PATIENCE: Duration = Duration::from_secs(45);

/// The exit code of a sweep that could not look.
const CANNOT_LOOK: i32 = 4;

/// Runs as the login user; with `elevate` as root where sudo allows it without asking, because what
/// was started through sudo cannot be seen otherwise.
pub(crate) fn script(mark: &str, elevate: bool) -> String {
    let directory = directory(mark);
    let inner = format!(
        "m=PLATFORM_ATTEMPT; m=$m={mark}; T={directory}\n\
         [ -r /proc/self/environ ] || exit {CANNOT_LOOK}\n\
         (umask 077; mkdir -p \"$T\" && : >\"$T/ended\") 2>/dev/null\n\
         find /tmp -maxdepth 1 -name '.platform-*' -user \"$(id -u)\" -mtime +1 -exec rm -rf {{}} + 2>/dev/null\n\
         carries() {{ tr '\\n\\000' ' \\n' <\"$1\" | grep -qxF \"$m\"; }}\n\
         i=0\n\
         while [ $i -lt 100 ]; do\n\
         p=\n\
         for e in $(grep -lF \"$m\" /proc/[0-9]*/environ 2>/dev/null); do\n\
         if carries \"$e\" 2>/dev/null; then e=${{e#/proc/}}; p=\"$p ${{e%/environ}}\"; fi\n\
         done\n\
         [ -n \"$p\" ] || exit 0\n\
         if [ $i -lt 20 ]; then kill -TERM $p 2>/dev/null; else kill -KILL $p 2>/dev/null; fi\n\
         sleep 0.1 2>/dev/null || sleep 1\n\
         i=$((i+1))\n\
         done\n\
         exit 3\n"
    );
    let inner = quote::word(&inner);
    let root = if elevate {
        format!(
            "if [ \"$(id -u)\" != 0 ]; then sudo -n true 2>/dev/null && exec sudo -n /bin/sh -c \"$s\"\n\
             /bin/sh -c \"$s\"; exit {CANNOT_LOOK}; fi\n"
        )
    } else {
        String::new()
    };
    let boot = format!("s={inner}\n{root}exec /bin/sh -c \"$s\"\n");
    format!("exec /bin/sh -c {}", quote::word(&boot))
}

/// Sweeps every target that the attempt touched.
pub(crate) async fn touched(context: &JobContext, elevate: bool) -> RemoteProcesses {
    let targets = context.touched();
    if targets.is_empty() {
        return RemoteProcesses::None;
    }
    let Ok(access) = Access::of(&context.spec, false) else {
        return RemoteProcesses::Unknown(vec!["the targets' connection data cannot be read".to_owned()]);
    };
    let line = script(&context.mark(), elevate);
    failpoints::hit("runner.sweep.before");
    let searches: Vec<_> = targets
        .iter()
        .map(|target| one(context, &access, target, line.clone()))
        .collect();
    let doubts: Vec<String> = futures::stream::iter(searches)
        .buffer_unordered(usize::from(context.tools.parallel_targets))
        .filter_map(std::future::ready)
        .collect()
        .await;
    failpoints::hit("runner.sweep.after");
    if doubts.is_empty() {
        RemoteProcesses::Ended
    } else {
        RemoteProcesses::Unknown(doubts)
    }
}

/// Why it is not known, if so.
async fn one(context: &JobContext, access: &Access, target: &ResourceId, line: String) -> Option<String> {
    let remote = Remote {
        target,
        line,
        pty: false,
        stdin: None,
        shown: Shown::Kept(4096),
        within: Some(PATIENCE),
        of_the_job: false,
    };
    let outcome = match context.remote(access, remote).await {
        Ok(outcome) => outcome,
        Err(error) => return Some(format!("{target}: {error}")),
    };
    match outcome.end {
        Some(RemoteEnd::Exited(0)) => None,
        Some(RemoteEnd::Exited(3)) => Some(format!("{target}: processes of the attempt do not end")),
        Some(RemoteEnd::Exited(CANNOT_LOOK)) => Some(format!("{target}: its processes cannot be listed")),
        Some(RemoteEnd::Unreachable(why) | RemoteEnd::Broken(why)) => Some(format!("{target}: {why}")),
        Some(other) => Some(format!("{target}: the search ended with {other:?}")),
        None => Some(format!("{target}: the search took too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssh::wrapper;
    use std::process::{Command, Stdio};

    #[test]
    fn a_sweep_ends_what_carries_the_mark_and_nothing_else() {
        let (mark, other) = (uuid::Uuid::now_v7().to_string(), uuid::Uuid::now_v7().to_string());
        let start = |mark: &str, script: &str| {
            Command::new("/bin/sh")
                .arg("-c")
                .arg(wrapper::marked(mark, script, &[]))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let up = |child: &mut std::process::Child| {
            use std::io::Read;
            let mut byte = [0; 3];
            child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        };
        let stubborn = "trap '' TERM; (setsid sh -c \"trap '' TERM; while :; do sleep 600; done\" &); echo up; while :; do sleep 600; done";
        let mut ours = start(&mark, stubborn);
        let mut theirs = start(&other, "echo up; exec sleep 600");
        up(&mut ours);
        up(&mut theirs);
        let swept = Command::new("/bin/sh")
            .arg("-c")
            .arg(script(&mark, false))
            .status()
            .unwrap();
        assert_eq!(swept.code(), Some(0));
        assert!(ours.wait().unwrap().code().is_none(), "ended by a signal");
        assert!(
            theirs.try_wait().unwrap().is_none(),
            "another attempt's process is left alone"
        );
        let again = Command::new("/bin/sh")
            .arg("-c")
            .arg(script(&other, false))
            .status()
            .unwrap();
        assert_eq!(again.code(), Some(0));
        theirs.wait().unwrap();
        for mark in [mark, other] {
            assert!(std::path::Path::new(&directory(&mark)).join("ended").exists());
            std::fs::remove_dir_all(directory(&mark)).unwrap();
        }
    }

    /// Places where programs keep the command that they were asked for: sshd under a forced command, and sudo.
    const TELLING: [&str; 2] = ["SSH_ORIGINAL_COMMAND", "SUDO_COMMAND"];

    #[test]
    fn a_sweep_whose_environment_tells_its_own_command_does_not_end_itself() {
        for (name, elevate) in TELLING.iter().flat_map(|name| [(name, false), (name, true)]) {
            let mark = uuid::Uuid::now_v7().to_string();
            let line = script(&mark, elevate);
            let places = fake_sudo();
            let swept = Command::new("/bin/sh")
                .arg("-c")
                .arg(&line)
                .env(name, &line)
                .env("PATH", format!("{}:/usr/bin:/bin", places.path().display()))
                .status()
                .unwrap();
            assert_eq!(swept.code(), Some(0), "{name}: {swept}");
            std::fs::remove_dir_all(directory(&mark)).unwrap();
        }
    }

    /// A login user that is not root, and a sudo that does without its rights.
    fn fake_sudo() -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;
        let places = tempfile::tempdir().unwrap();
        let sudo = "#!/bin/sh\nshift\nSUDO_COMMAND=\"$*\" exec \"$@\"\n";
        for (name, text) in [("sudo", sudo), ("id", "#!/bin/sh\necho 1000\n")] {
            let path = places.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        places
    }

    #[test]
    fn what_only_tells_the_mark_and_does_not_carry_it_is_left_alone() {
        let mark = uuid::Uuid::now_v7().to_string();
        for value in [
            format!("exec env PLATFORM_ATTEMPT={mark} /bin/sh -c 'service start'"),
            format!("one\nPLATFORM_ATTEMPT={mark}\nthree"),
            format!("PLATFORM_ATTEMPT={mark}0"),
        ] {
            let mut deployed = Command::new("/bin/sleep")
                .arg("600")
                .env(TELLING[1], value)
                .spawn()
                .unwrap();
            let swept = Command::new("/bin/sh")
                .arg("-c")
                .arg(script(&mark, false))
                .status()
                .unwrap();
            assert_eq!(swept.code(), Some(0));
            assert!(deployed.try_wait().unwrap().is_none());
            deployed.kill().unwrap();
            deployed.wait().unwrap();
        }
        std::fs::remove_dir_all(directory(&mark)).unwrap();
    }
}
