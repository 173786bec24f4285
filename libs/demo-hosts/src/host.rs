//! The handle on one running host.

use std::{
    fs::{self, File},
    net::Ipv4Addr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use child_process::{Account, KeptChild, Signal};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::{
    DATA_VOLUME, HostError, USER, addresses,
    files::HostFiles,
    keys,
    processes::{self, HostProcess},
    sandbox::{self, Sandbox},
};

const START_LIMIT: Duration = Duration::from_secs(30);
const END_LIMIT: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// A host that answers to SSH. Dropping it ends it, and everything that runs on it.
#[derive(Debug)]
pub struct Host {
    pub name: String,
    pub address: Ipv4Addr,
    pub port: u16,
    pub user: &'static str,
    /// `type base64`, as known_hosts and the catalog's connection data want it.
    pub host_key: String,
    files: HostFiles,
    child: KeptChild,
    /// The first process inside, by the machine's number; the descriptor says whether it lives.
    first: i32,
    first_descriptor: OwnedFd,
    namespace: PathBuf,
}

impl Host {
    pub(crate) fn start(
        root: &Path,
        name: &str,
        address: Ipv4Addr,
        port: u16,
        authorized: &str,
    ) -> Result<Self, HostError> {
        let files = HostFiles::create(root, name, address, port)?;
        files.write("etc/ssh/authorized_keys", &format!("{authorized}\n"), 0o644)?;
        let host_key = keys::make(&files.at("etc/ssh/ssh_host_ed25519_key"), name)?;
        let log_path = files.at("log/sshd.log");
        let log = File::create(&log_path).map_err(HostError::files("create", &log_path))?;
        let Sandbox { child, first } = sandbox::start(name, &files, log)?;
        wait_for_greeting(name, &child, address, port, &files)?;
        let gone = || HostError::Gone { name: name.to_owned() };
        let pid = Pid::from_raw(first).ok_or_else(gone)?;
        let first_descriptor = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| gone())?;
        let namespace = processes::namespace_of(first).ok_or_else(gone)?;
        let host = Self {
            name: name.to_owned(),
            address,
            port,
            user: USER,
            host_key,
            files,
            child,
            first,
            first_descriptor,
            namespace,
        };
        host.files.own(&host.inside(DATA_VOLUME))?;
        Ok(host)
    }

    /// A path of the host as this process can open it. (An absolute link on the way would lead out.)
    pub fn inside(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.first)).join(path.trim_start_matches('/'))
    }

    pub(crate) fn account(&self) -> Account {
        self.files.account
    }

    /// The home directory of the account that logs in.
    pub fn home(&self) -> PathBuf {
        self.files.at("home")
    }

    /// Every command that SSH brought since the host started, oldest first, quoted as bash does.
    pub fn commands(&self) -> Result<Vec<String>, HostError> {
        let path = self.files.at("log/commands.log");
        let text = fs::read_to_string(&path).map_err(HostError::files("read", &path))?;
        Ok(text
            .lines()
            .filter_map(|line| Some(line.split_once('\t')?.1.to_owned()))
            .collect())
    }

    /// Everything that runs on the host at this moment, sshd and the host's own first process included.
    pub fn processes(&self) -> Vec<HostProcess> {
        processes::in_namespace(&self.namespace)
    }

    /// The processes whose command line holds `text`.
    pub fn running(&self, text: &str) -> Vec<HostProcess> {
        let holds = |process: &HostProcess| process.argv.iter().any(|word| word.contains(text));
        self.processes().into_iter().filter(holds).collect()
    }

    /// The processes that carry `mark` (`NAME=value`) in their environment.
    pub fn marked(&self, mark: &str) -> Vec<HostProcess> {
        let carries = |process: &HostProcess| process.environment.iter().any(|entry| entry == mark);
        self.processes().into_iter().filter(carries).collect()
    }

    /// An `ssh` command that logs in with `key` and knows this host; the caller adds what to run.
    pub fn ssh(&self, key: &Path, known_hosts: &Path) -> Command {
        let mut command = Command::new("ssh");
        command.args(["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]);
        command.args(["-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR"]);
        command
            .arg("-o")
            .arg(format!("UserKnownHostsFile={}", known_hosts.display()));
        command.arg("-i").arg(key).arg("-p").arg(self.port.to_string());
        command.arg(format!("{}@{}", self.user, self.address));
        command
    }

    /// Ends the host and waits until everything that ran on it is gone.
    pub fn stop(self) -> Result<(), HostError> {
        self.child
            .signal(Signal::KILL)
            .map_err(HostError::files("end", &self.files.root))?;
        let mut first = [PollFd::new(&self.first_descriptor, PollFlags::IN)];
        let ended = poll(&mut first, Some(&END_LIMIT));
        match ended {
            Ok(1..) => Ok(()),
            _ => Err(HostError::Files {
                what: "end",
                path: self.files.root.clone(),
                source: std::io::ErrorKind::TimedOut.into(),
            }),
        }
    }
}

fn wait_for_greeting(
    name: &str,
    child: &KeptChild,
    address: Ipv4Addr,
    port: u16,
    files: &HostFiles,
) -> Result<(), HostError> {
    let deadline = Instant::now() + START_LIMIT;
    while !addresses::greets(address, port) {
        if child.wait_for(Duration::from_millis(10)).is_some() {
            return Err(HostError::EndedAtStart {
                name: name.to_owned(),
                log: sandbox::last_lines(files),
            });
        }
        if Instant::now() > deadline {
            return Err(HostError::Silent {
                name: name.to_owned(),
                address,
                port,
                log: sandbox::last_lines(files),
            });
        }
    }
    Ok(())
}
