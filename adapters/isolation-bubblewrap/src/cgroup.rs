//! Memory and process limits by control groups, where this machine lets us write them.
//!
//! Both trees occur: the unified one (v2) and the older one tree per controller (v1). What is not
//! writable is said so, and resource limits of the process itself take its place where they can.

use std::fs;
use std::path::{Path, PathBuf};

use execution_plane_ports::Limits;

const PARENT: &str = "platform-runner";
const ROOT: &str = "/sys/fs/cgroup";

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
            match fs::create_dir(&group) {
                Ok(()) => groups.0.push(group.clone()),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            fs::write(group.join(tree.limit_file), limit.to_string())?;
            fs::write(group.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(groups)
    }
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
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
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
