//! Ending what an attempt left on its targets.
//!
//! The sweep puts a tombstone into the attempt's directory, then signals every process that carries
//! the mark (TERM, later KILL) until none is found. Only "looked and found none" counts as ended.
//!
//! To carry the mark is to have it as a variable of its own. A mention within another's value is not
//! enough: sshd under a forced command (`SSH_ORIGINAL_COMMAND`) and sudo (`SUDO_COMMAND`) tell the
//! whole command to all that it starts. That is so of the sweep itself, which would end itself, and of
//! services that a job deployed, which would end with it.
//!
//! What runs as root shows its environment to root alone, and sudo takes the mark from what it starts. So a
//! sweep looks as root wherever the login user may become root without being asked. It ends what is below a
//! marked sudo too, mark or no mark, and what is below a marked process and cannot be looked into counts as
//! the attempt's. Where root was needed and may not look, nobody knows.

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

/// Whether an attempt may have started something as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsRoot {
    /// Nothing says so: root looks where it may, else the login user does.
    Perhaps,
    /// Something says so: where root may not look, it is not known what runs.
    Surely,
}

/// Runs as root where sudo allows it without asking, else as the login user.
pub(crate) fn script(mark: &str, as_root: AsRoot) -> String {
    let directory = directory(mark);
    let inner = format!(
        "m=PLATFORM_ATTEMPT; m=$m={mark}; T={directory}\n\
         [ -r /proc/self/environ ] || exit {CANNOT_LOOK}\n\
         (umask 077; mkdir -p \"$T\" && : >\"$T/ended\") 2>/dev/null\n\
         find /tmp -maxdepth 1 -name '.platform-*' -user \"$(id -u)\" -mtime +1 -exec rm -rf {{}} + 2>/dev/null\n\
         carries() {{ tr '\\n\\000' ' \\n' <\"$1\" | grep -qxF \"$m\"; }}\n\
         u=' '\n\
         below() {{ for s in $(grep -lx \"PPid:[[:space:]]*$1\" /proc/[0-9]*/status 2>/dev/null); do\n\
         s=${{s#/proc/}}; s=${{s%/status}}\n\
         case \"$u\" in *\" $s \"*) continue;; esac\n\
         if [ \"$2\" = all ] || [ ! -r \"/proc/$s/environ\" ]; then u=\"$u$s \"; below \"$s\" all; fi\n\
         done; }}\n\
         i=0\n\
         while [ $i -lt 100 ]; do\n\
         p=\n\
         for e in $(grep -lF \"$m\" /proc/[0-9]*/environ 2>/dev/null); do\n\
         if carries \"$e\" 2>/dev/null; then e=${{e#/proc/}}; e=${{e%/environ}}; p=\"$p $e\"\n\
         case \"$(cat \"/proc/$e/comm\" 2>/dev/null)\" in sudo) below \"$e\" all;; *) below \"$e\" hidden;; esac; fi\n\
         done\n\
         for e in $u; do [ -d \"/proc/$e\" ] && ! grep -q '^State:[[:space:]]*[ZX]' \"/proc/$e/status\" 2>/dev/null && p=\"$p $e\"; done\n\
         [ -n \"$p\" ] || exit 0\n\
         if [ $i -lt 20 ]; then kill -TERM $p 2>/dev/null; else kill -KILL $p 2>/dev/null; fi\n\
         sleep 0.1 2>/dev/null || sleep 1\n\
         i=$((i+1))\n\
         done\n\
         exit 3\n"
    );
    let inner = quote::word(&inner);
    let otherwise = match as_root {
        AsRoot::Surely => format!("/bin/sh -c \"$s\"; exit {CANNOT_LOOK}"),
        AsRoot::Perhaps => "exec /bin/sh -c \"$s\"".to_owned(),
    };
    let root = format!(
        "if [ \"$(id -u)\" != 0 ]; then\n\
         command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null && exec sudo -n /bin/sh -c \"$s\"\n\
         {otherwise}; fi\n"
    );
    let boot = format!("s={inner}\n{root}exec /bin/sh -c \"$s\"\n");
    format!("exec /bin/sh -c {}", quote::word(&boot))
}

/// Sweeps every target that the attempt touched.
pub(crate) async fn touched(context: &JobContext, as_root: AsRoot) -> RemoteProcesses {
    let targets = context.touched();
    if targets.is_empty() {
        return RemoteProcesses::None;
    }
    let Ok(access) = Access::of(&context.spec, false) else {
        return RemoteProcesses::Unknown(vec!["the targets' connection data cannot be read".to_owned()]);
    };
    let line = script(&context.mark(), as_root);
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
        Some(RemoteEnd::Exited(CANNOT_LOOK)) => Some(format!(
            "{target}: what runs there as root cannot be seen by the login user, or its processes cannot be listed"
        )),
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
            .arg(script(&mark, AsRoot::Perhaps))
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
            .arg(script(&other, AsRoot::Perhaps))
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
        let each = |name| [(name, AsRoot::Perhaps), (name, AsRoot::Surely)];
        for (name, as_root) in TELLING.iter().flat_map(each) {
            let mark = uuid::Uuid::now_v7().to_string();
            let line = script(&mark, as_root);
            let places = login_user(DOES);
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

    /// A sudo that does as asked, with the rights that it has; and one that does nothing without a password.
    const DOES: &str = "#!/bin/sh\nshift\nSUDO_COMMAND=\"$*\" exec \"$@\"\n";
    const ASKS: &str = "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n";

    /// Programs as a login user has them that is not root.
    fn login_user(sudo: &str) -> tempfile::TempDir {
        let places = tempfile::tempdir().unwrap();
        program(places.path(), "sudo", sudo);
        program(places.path(), "id", "#!/bin/sh\necho 1000\n");
        places
    }

    fn program(place: &std::path::Path, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = place.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn swept(line: &str, places: &std::path::Path) -> Option<i32> {
        let mut sweep = Command::new("/bin/sh");
        sweep.arg("-c").arg(line);
        sweep.env("PATH", format!("{}:/usr/bin:/bin", places.display()));
        sweep.stderr(Stdio::null()).status().unwrap().code()
    }

    #[test]
    fn where_root_was_needed_and_may_not_look_nothing_is_said_to_have_ended() {
        for (sudo, as_root, code) in [
            (ASKS, AsRoot::Surely, CANNOT_LOOK),
            (ASKS, AsRoot::Perhaps, 0),
            (DOES, AsRoot::Surely, 0),
        ] {
            let mark = uuid::Uuid::now_v7().to_string();
            let places = login_user(sudo);
            assert_eq!(
                swept(&script(&mark, as_root), places.path()),
                Some(code),
                "{as_root:?} {sudo}"
            );
            std::fs::remove_dir_all(directory(&mark)).unwrap();
        }
    }

    #[test]
    fn what_sudo_took_the_mark_from_is_ended_with_it() {
        let mark = uuid::Uuid::now_v7().to_string();
        let places = login_user("#!/bin/sh\ntrap '' TERM\nenv -u PLATFORM_ATTEMPT \"$@\"\nexit $?\n");
        let job = format!(
            "{}/sudo sh -c \"trap '' TERM; echo up; while :; do sleep 600; done\"",
            places.path().display()
        );
        let mut ours = Command::new("/bin/sh")
            .arg("-c")
            .arg(wrapper::marked(&mark, &job, &[]))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = ours.stdout.take().unwrap();
        std::io::Read::read_exact(&mut output, &mut [0; 3]).unwrap();
        let root = login_user(DOES);
        assert_eq!(swept(&script(&mark, AsRoot::Surely), root.path()), Some(0));
        assert!(!ours.wait().unwrap().success());
        // Its end is that of the pipe: nobody holds it open any more.
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut output, &mut rest).unwrap();
        std::fs::remove_dir_all(directory(&mark)).unwrap();
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
                .arg(script(&mark, AsRoot::Perhaps))
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
