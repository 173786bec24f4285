//! What runs on a host, counted from outside: by its process namespace, which nothing that runs
//! inside can leave, whatever it forks, renames or detaches.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A process of a host, by the machine's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostProcess {
    pub pid: i32,
    pub argv: Vec<String>,
    /// `NAME=value`, as it was when the program started.
    pub environment: Vec<String>,
}

/// The namespace that a process lives in.
pub(crate) fn namespace_of(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

pub(crate) fn in_namespace(namespace: &Path) -> Vec<HostProcess> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| namespace_of(*pid).is_some_and(|other| other == namespace))
        .map(|pid| HostProcess {
            pid,
            argv: words(pid, "cmdline"),
            environment: words(pid, "environ"),
        })
        // A process without arguments is gone already and waits only to be collected.
        .filter(|process| !process.argv.is_empty())
        .collect()
}

fn words(pid: i32, file: &str) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split_terminator('\0').map(str::to_owned).collect()
}
