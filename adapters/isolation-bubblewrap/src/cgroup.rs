//! Memory and process limits by control groups, where this machine lets us write them.
//!
//! Both trees occur: the unified one (v2) and the older one tree per controller (v1). What is not
//! writable is said so, and resource limits of the process itself take its place where they can.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use execution_plane_ports::Limits;
use rustix::io::Errno;

const PARENT: &str = "platform-runner";
const ROOT: &str = "/sys/fs/cgroup";
/// How often a group is made that others take away before its process is in it; once is rare.
const TRIES: u32 = 100;

/// The control groups that this runner may use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cgroups {
    memory: Option<Tree>,
    pids: Option<Tree>,
}

#[derive(Debug, Clone)]
struct Tree {
    directory: PathBuf,
    limit_file: &'static str,
}

/// The groups of one command; removed when dropped (they are empty then).
#[derive(Debug, Default)]
pub(crate) struct CommandGroups(Vec<PathBuf>);

impl Cgroups {
    /// Finds out what can be written, and clears away what earlier runners left.
    pub(crate) fn discover() -> Self {
        if let Some(directory) = unified() {
            let tree = |limit_file| {
                Some(Tree {
                    directory: directory.clone(),
                    limit_file,
                })
            };
            return Self {
                memory: tree("memory.max"),
                pids: tree("pids.max"),
            };
        }
        Self {
            memory: legacy("memory", "memory.limit_in_bytes"),
            pids: legacy("pids", "pids.max"),
        }
    }

    pub(crate) const fn limits_memory(&self) -> bool {
        self.memory.is_some()
    }

    pub(crate) const fn limits_processes(&self) -> bool {
        self.pids.is_some()
    }

    /// Makes the groups of one command and puts the (still waiting) process `pid` into them.
    pub(crate) fn enter(&self, id: &str, pid: i32, limits: &Limits) -> std::io::Result<CommandGroups> {
        let mut groups = CommandGroups::default();
        for (tree, limit) in [(&self.memory, limits.memory_bytes), (&self.pids, limits.processes)] {
            let (Some(tree), Some(limit)) = (tree, limit) else {
                continue;
            };
            let group = tree.directory.join(id);
            let mut entered = tree.enter(&group, pid, limit);
            for _ in 1..TRIES {
                match &entered {
                    Err(error) if is_taken_away(error) => entered = tree.enter(&group, pid, limit),
                    _ => break,
                }
            }
            if entered? {
                groups.0.push(group);
            }
        }
        Ok(groups)
    }
}

impl Tree {
    /// Makes the group and puts the process into it; says whether the group is new.
    fn enter(&self, group: &Path, pid: i32, limit: u64) -> std::io::Result<bool> {
        let is_new = match fs::create_dir(group) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        fs::write(group.join(self.limit_file), limit.to_string())?;
        fs::write(group.join("cgroup.procs"), pid.to_string())?;
        Ok(is_new)
    }
}

/// Another runner of this machine, which starts just now, took the group for one that was left: it was
/// gone before its file was opened, or before that was written.
fn is_taken_away(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || Errno::from_io_error(error) == Some(Errno::NODEV)
}

impl Drop for CommandGroups {
    fn drop(&mut self) {
        for group in &self.0 {
            drop(fs::remove_dir(group));
        }
    }
}

fn unified() -> Option<PathBuf> {
    let controllers = fs::read_to_string(Path::new(ROOT).join("cgroup.controllers")).ok()?;
    let has = |wanted: &str| controllers.split_whitespace().any(|name| name == wanted);
    if !(has("memory") && has("pids")) {
        return None;
    }
    let parent = own_group("").join(PARENT);
    make_parent(&parent)?;
    fs::write(parent.join("cgroup.subtree_control"), "+memory +pids").ok()?;
    Some(parent)
}

fn legacy(controller: &str, limit_file: &'static str) -> Option<Tree> {
    let parent = own_group(controller).join(PARENT);
    make_parent(&parent)?;
    Some(Tree {
        directory: parent,
        limit_file,
    })
}

/// The directory of the group that this process is in; the tree's root when it cannot be told.
fn own_group(controller: &str) -> PathBuf {
    let root = Path::new(ROOT).join(controller);
    let listing = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = listing.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let path = parts.next()?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    });
    let own = root.join(path.unwrap_or("/").trim_start_matches('/'));
    if own.is_dir() { own } else { root }
}

fn make_parent(parent: &Path) -> Option<()> {
    match fs::create_dir(parent) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(_) => return None,
    }
    // Groups of a runner that was killed; a populated one refuses to go.
    for left in fs::read_dir(parent)
        .ok()?
        .flatten()
        .filter(|entry| entry.path().is_dir())
    {
        drop(fs::remove_dir(left.path()));
    }
    let probe = parent.join(format!("probe-{}", std::process::id()));
    fs::create_dir(&probe).ok()?;
    let writable = fs::OpenOptions::new()
        .write(true)
        .open(probe.join("cgroup.procs"))
        .is_ok();
    fs::remove_dir(&probe).ok()?;
    writable.then_some(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Where no group can be written there is nothing to take away, and nothing is entered.
    #[test]
    fn a_runner_that_starts_beside_this_one_takes_no_group_away_from_its_commands() {
        let cgroups = Cgroups::discover();
        let limits = Limits {
            memory_bytes: Some(64 << 20),
            processes: Some(16),
            ..Limits::default()
        };
        let mut command = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .expect("sleep is there");
        let pid = i32::try_from(command.id()).expect("a pid");
        let is_over = AtomicBool::new(false);
        let faults: Vec<String> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    Cgroups::discover();
                }
            });
            let name = |round: u32| format!("test-{pid}-{round}");
            let enter = |round| cgroups.enter(&name(round), pid, &limits).map(drop);
            let faults = (0..300)
                .filter_map(|round| enter(round).err())
                .map(|error| error.to_string());
            let faults = faults.collect();
            is_over.store(true, Ordering::Relaxed);
            faults
        });
        command.kill().expect("it runs");
        command.wait().expect("it ends");
        Cgroups::discover();
        assert!(faults.is_empty(), "{faults:?}");
    }
}
