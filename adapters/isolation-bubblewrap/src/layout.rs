//! What a sandboxed command sees of the machine: a list of arguments for bubblewrap.
//!
//! Invariants: only what stands here is visible. The runner's own state, its secret store and other
//! attempts are not, because a process that is root outside still owns root's files inside.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use execution_plane_ports::{IsolationError, JobFile, Mount, Network, SandboxCommand};
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use std::io::Write;

pub(crate) const WORK: &str = "/job";
/// The user that jobs are, inside.
const JOB_UID: &str = "1000";
const PASSWD: &[u8] = b"root:x:0:0:root:/root:/usr/sbin/nologin\njob:x:1000:1000:job:/job:/bin/sh\n";
const GROUP: &[u8] = b"root:x:0:\njob:x:1000:\n";
/// Files of /etc that programs need to resolve names and trust certificates; none holds a secret.
const ETC: [&str; 14] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
];

/// Arguments, and the descriptors that they name.
pub(crate) struct Arguments {
    pub(crate) words: Vec<OsString>,
    pub(crate) descriptors: Vec<(OwnedFd, i32)>,
    next_descriptor: i32,
}

impl Arguments {
    /// Descriptors below `first_descriptor` are the caller's.
    pub(crate) fn new(first_descriptor: i32) -> Self {
        Self {
            words: Vec::new(),
            descriptors: Vec::new(),
            next_descriptor: first_descriptor,
        }
    }

    pub(crate) fn push<const N: usize>(&mut self, words: [&str; N]) {
        self.words.extend(words.into_iter().map(OsString::from));
    }

    fn push_paths(&mut self, option: &str, source: &Path, destination: &Path) {
        self.words.extend([option.into(), source.into(), destination.into()]);
    }

    pub(crate) fn descriptor(&mut self, option: &str, fd: OwnedFd) {
        let number = self.next_descriptor;
        self.next_descriptor += 1;
        self.descriptors.push((fd, number));
        self.words.extend([option.into(), number.to_string().into()]);
    }

    fn file(&mut self, option: &str, mode: u32, bytes: &[u8], destination: &str) -> std::io::Result<()> {
        let fd = in_memory(bytes)?;
        self.push(["--perms", &format!("{mode:04o}")]);
        self.descriptor(option, fd);
        self.push([destination]);
        Ok(())
    }
}

/// A descriptor of an anonymous file that was never on any disk.
fn in_memory(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let fd = memfd_create("job-file", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Describes the whole view of `command`.
pub(crate) fn describe(
    arguments: &mut Arguments,
    command: &SandboxCommand,
    shared: &[Mount],
) -> Result<(), IsolationError> {
    arguments.push([
        "--die-with-parent",
        "--new-session",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
    ]);
    arguments.push(["--unshare-uts", "--unshare-cgroup-try", "--hostname", "job"]);
    arguments.push(["--uid", JOB_UID, "--gid", JOB_UID, "--cap-drop", "ALL"]);
    if command.network == Network::None {
        arguments.push(["--unshare-net"]);
    }
    system(arguments).map_err(|source| IsolationError::Start {
        step: "describing the system",
        source,
    })?;
    let size = command.limits.work_bytes.unwrap_or(256 << 20).to_string();
    arguments.push(["--proc", "/proc", "--dev", "/dev"]);
    arguments.push(["--perms", "1777", "--size", &size, "--tmpfs", "/tmp"]);
    arguments.push(["--perms", "0700", "--size", &size, "--tmpfs", WORK]);
    for mount in shared.iter().chain(&command.mounts) {
        let option = if mount.writable { "--bind" } else { "--ro-bind" };
        arguments.push_paths(option, &mount.path, &mount.path);
    }
    for file in &command.files {
        job_file(arguments, file)?;
    }
    arguments.push(["--remount-ro", "/"]);
    arguments
        .words
        .extend(["--chdir".into(), command.directory.as_os_str().to_owned()]);
    Ok(())
}

fn system(arguments: &mut Arguments) -> std::io::Result<()> {
    arguments.push(["--ro-bind", "/usr", "/usr"]);
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let path = Path::new("/").join(name);
        match std::fs::read_link(&path) {
            Ok(target) => arguments.push_paths("--symlink", &target, &path),
            Err(_) if path.is_dir() => arguments.push_paths("--ro-bind", &path, &path),
            Err(_) => {}
        }
    }
    for path in ETC {
        arguments.push(["--ro-bind-try", path, path]);
    }
    arguments.file("--ro-bind-data", 0o444, PASSWD, "/etc/passwd")?;
    arguments.file("--ro-bind-data", 0o444, GROUP, "/etc/group")
}

fn job_file(arguments: &mut Arguments, file: &JobFile) -> Result<(), IsolationError> {
    let path = relative(&file.path)?;
    let mut parent = Path::new(WORK).to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        parent.push(part);
        arguments.push(["--perms", "0700"]);
        arguments.words.extend(["--dir".into(), parent.clone().into()]);
    }
    let destination = format!("{WORK}/{}", file.path);
    arguments
        .file("--file", file.mode, file.content.bytes(), &destination)
        .map_err(|source| IsolationError::Start {
            step: "preparing the job's files",
            source,
        })
}

/// A path that stays below the work directory.
pub(crate) fn relative(path: &str) -> Result<&Path, IsolationError> {
    let candidate = Path::new(path);
    let plain = candidate.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !path.is_empty() && !path.contains('\0') {
        Ok(candidate)
    } else {
        Err(IsolationError::Refused(format!("{path:?} leaves the work directory")))
    }
}
