//! A set of hosts with one client key that opens them all.

use std::{
    env,
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crate::{Host, HostError, addresses::Block, keys};

/// Which hosts to start. The directory is made when it is missing and may be used again.
#[derive(Debug, Clone)]
pub struct Options {
    pub directory: PathBuf,
    pub names: Vec<String>,
    pub ssh_port: u16,
}

impl Options {
    /// Hosts `web-1` to `web-<count>`.
    pub fn web(directory: impl Into<PathBuf>, count: usize) -> Self {
        let names = (1..=count).map(|number| format!("web-{number}")).collect();
        Self {
            directory: directory.into(),
            names,
            ssh_port: 2222,
        }
    }
}

/// Running hosts. Dropping them ends them.
#[derive(Debug)]
pub struct Hosts {
    pub hosts: Vec<Host>,
    /// The client's private key, mode 0600.
    pub private_key: PathBuf,
    /// Its public half, `type base64`.
    public_key: String,
    pub known_hosts: PathBuf,
    block: Block,
}

impl Hosts {
    /// Makes the keys, starts the hosts and returns when each has greeted.
    pub fn start(options: &Options) -> Result<Self, HostError> {
        check(options)?;
        let directory = &options.directory;
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)
            .map_err(HostError::files("create", directory))?;
        let directory = directory
            .canonicalize()
            .map_err(HostError::files("resolve", directory))?;
        let block = Block::hold(options.names.len(), options.ssh_port)?;
        let private_key = directory.join("client_ed25519_key");
        let public_key = keys::make(&private_key, "client")?;
        let mut hosts = Vec::new();
        for (index, name) in (0..=u8::MAX).zip(&options.names) {
            let root = directory.join("hosts").join(name);
            hosts.push(Host::start(
                &root,
                name,
                block.address(index),
                options.ssh_port,
                &public_key,
            )?);
        }
        let known_hosts = directory.join("known_hosts");
        let lines: String = hosts.iter().map(known_hosts_line).collect();
        fs::write(&known_hosts, lines).map_err(HostError::files("write", &known_hosts))?;
        Ok(Self {
            hosts,
            private_key,
            public_key,
            known_hosts,
            block,
        })
    }

    /// The client's public key, `type base64`.
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// The host of that name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Ends all hosts and waits until everything that ran on them is gone.
    pub fn stop(self) -> Result<(), HostError> {
        let ended: Vec<_> = self.hosts.into_iter().map(Host::stop).collect();
        drop(self.block);
        ended.into_iter().collect()
    }
}

fn known_hosts_line(host: &Host) -> String {
    format!("[{}]:{} {}\n", host.address, host.port, host.host_key)
}

fn check(options: &Options) -> Result<(), HostError> {
    if options.names.is_empty() || options.names.len() > 200 {
        return Err(HostError::Count(options.names.len()));
    }
    let plain = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if let Some(name) = options.names.iter().find(|name| !plain(name)) {
        return Err(HostError::Name(name.clone()));
    }
    let search = env::var_os("PATH").unwrap_or_default();
    let on_path = |program: &str| env::split_paths(&search).any(|directory| directory.join(program).exists());
    for (program, package) in [("bwrap", "bubblewrap"), ("ssh-keygen", "openssh-client")] {
        if !on_path(program) {
            return Err(HostError::Missing { program, package });
        }
    }
    for (program, package) in [("/usr/sbin/sshd", "openssh-server"), ("/usr/bin/python3", "python3")] {
        if !Path::new(program).exists() {
            return Err(HostError::Missing { program, package });
        }
    }
    Ok(())
}
