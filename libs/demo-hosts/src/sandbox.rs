//! The namespaces of a host, made by bubblewrap: a small root of its own over the machine's `/usr`.
//!
//! bubblewrap needs no privileges, and the process namespace it makes is the switch that ends a
//! host: with its first process, the kernel ends all others in it.

use std::{
    fs::File,
    io::Read,
    path::Path,
    process::{ChildStdout, Stdio},
};

use child_process::{Account, DeathSignal, KeptChild, Launch};

use crate::{
    DATA_VOLUME, HostError, USER,
    files::{HostFiles, SHARED_ETC},
};

const DATA_VOLUME_BYTES: &str = "16777216";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A host's outermost process, and the first process inside it, by the machine's numbers.
pub(crate) struct Sandbox {
    pub child: KeptChild,
    pub first: i32,
}

pub(crate) fn start(name: &str, files: &HostFiles, log: File) -> Result<Sandbox, HostError> {
    let launch = Launch::new("bwrap", DeathSignal::Kill)
        .args(namespaces(name))
        .args(mounts(files))
        .args(["--clearenv", "--setenv", "PATH", PATH, "--chdir", "/"])
        .args(["--", "/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/sshd_config"])
        .stdout(Stdio::piped())
        .stderr(log);
    let mut child = launch.spawn().map_err(|source| HostError::Launch {
        name: name.to_owned(),
        source,
    })?;
    let first = child.stdout.take().and_then(read_first_process);
    let first = first.ok_or_else(|| HostError::EndedAtStart {
        name: name.to_owned(),
        log: last_lines(files),
    })?;
    Ok(Sandbox { child, first })
}

/// The end of what bubblewrap and sshd wrote.
pub(crate) fn last_lines(files: &HostFiles) -> String {
    let text = std::fs::read(files.at("log/sshd.log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

fn namespaces(name: &str) -> Vec<String> {
    let mut args = strings(&["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", name]);
    args.extend(strings(&["--die-with-parent", "--info-fd", "1"]));
    // Root's sshd must change accounts, so it keeps its capabilities; others get a user namespace.
    args.extend(if Account::current().is_root() {
        strings(&["--cap-add", "ALL"])
    } else {
        strings(&["--unshare-user"])
    });
    args
}

fn mounts(files: &HostFiles) -> Vec<String> {
    let at = |path: &str| files.at(path).to_string_lossy().into_owned();
    let mut args = strings(&["--ro-bind", "/usr", "/usr"]);
    for name in ["bin", "lib", "lib64", "sbin"] {
        if Path::new("/").join(name).is_symlink() {
            args.extend(["--symlink".to_owned(), format!("usr/{name}"), format!("/{name}")]);
        } else if Path::new("/").join(name).exists() {
            args.extend(["--ro-bind".to_owned(), format!("/{name}"), format!("/{name}")]);
        }
    }
    args.extend(strings(&[
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--ro-bind",
        &at("etc"),
        "/etc",
    ]));
    for name in SHARED_ETC.map(|name| format!("/etc/{name}")) {
        args.extend(["--ro-bind-try".to_owned(), name.clone(), name]);
    }
    // bubblewrap makes missing parents for its own account only.
    for parent in ["/home", "/var", "/var/log"] {
        args.extend(strings(&["--perms", "0755", "--dir", parent]));
    }
    args.extend(strings(&["--bind", &at("home"), &format!("/home/{USER}")]));
    args.extend(strings(&[
        "--bind",
        &at("tmp"),
        "/tmp",
        "--bind",
        &at("log"),
        "/var/log/host",
    ]));
    args.extend(strings(&["--perms", "1777", "--tmpfs", "/var/tmp"]));
    args.extend(strings(&[
        "--perms",
        "0755",
        "--size",
        DATA_VOLUME_BYTES,
        "--tmpfs",
        DATA_VOLUME,
    ]));
    args.extend(strings(&[
        "--perms",
        "0755",
        "--tmpfs",
        "/run",
        "--perms",
        "0755",
        "--dir",
        "/run/sshd",
    ]));
    args.extend(strings(&["--remount-ro", "/"]));
    args
}

fn strings(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// bubblewrap tells the number of the first process inside as JSON, then closes the pipe.
fn read_first_process(mut pipe: ChildStdout) -> Option<i32> {
    let mut text = Vec::new();
    let mut byte = [0];
    while pipe.read(&mut byte).ok()? == 1 {
        text.push(byte[0]);
        if byte[0] == b'}' {
            break;
        }
    }
    let info: serde_json::Value = serde_json::from_slice(&text).ok()?;
    i32::try_from(info.get("child-pid")?.as_i64()?).ok()
}
