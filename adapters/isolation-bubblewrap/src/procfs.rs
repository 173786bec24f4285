//! Finding processes: the descendants of one, or those that carry a mark in their environment.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Opens a process so that a recycled number can never be signalled in its place.
pub(crate) fn open(pid: Pid) -> Option<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Every descendant of `pid`, without itself. Orphans inside a pid namespace are children of its
/// init, so nothing there escapes this walk.
pub(crate) fn descendants(pid: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        let children = children_of(parent);
        found.extend_from_slice(&children);
        open.extend(children);
    }
    found
}

fn children_of(pid: Pid) -> Vec<Pid> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
        return Vec::new();
    };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(parse_pid).collect::<Vec<_>>())
        .collect()
}

/// Every living process whose environment holds exactly `pair` (`NAME=value`).
pub(crate) fn carrying(pair: &str) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| parse_pid(entry.file_name().to_str()?))
        .filter(|pid| {
            std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).is_ok_and(|environ| {
                environ
                    .split(|&byte| byte == 0)
                    .any(|variable| variable == pair.as_bytes())
            })
        })
        .collect()
}

/// Signals each process; those that are gone are no matter.
pub(crate) fn signal_all(pids: &[Pid], signal: Signal) {
    for process in pids.iter().copied().filter_map(open) {
        let _ = pidfd_send_signal(&process, signal);
    }
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse::<i32>().ok().filter(|&raw| raw > 0).and_then(Pid::from_raw)
}
