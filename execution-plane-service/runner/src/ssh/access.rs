//! Where the targets are and how to be sure that it is they who answer: the client's configuration.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use contracts::JobSpec;
use execution_plane_domain::Fault;
use execution_plane_domain::job::SshConnection;
use execution_plane_ports::{FileContent, JobFile, SecretValue};
use kernel::ResourceId;

/// Below the job's directory.
const DIRECTORY: &str = "ssh";

/// The targets of a job, by resource id, which is also the alias under which a host key is known.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    hosts: BTreeMap<ResourceId, SshConnection>,
}

impl Access {
    /// Reads the connection of every target that has one.
    ///
    /// # Errors
    /// Every fault in them; and, when `all` must be reachable, every target without a connection.
    pub(crate) fn of(spec: &JobSpec, all: bool) -> Result<Self, Vec<Fault>> {
        let mut hosts = BTreeMap::new();
        let mut faults = Vec::new();
        for (index, target) in spec.target.resources.iter().enumerate() {
            if target.connection.is_none() && !all {
                continue;
            }
            match SshConnection::of(target, &format!("/target/resources/{index}")) {
                Ok(connection) => {
                    hosts.insert(target.resource_id.clone(), connection);
                }
                Err(found) => faults.extend(found),
            }
        }
        if faults.is_empty() {
            Ok(Self { hosts })
        } else {
            Err(faults)
        }
    }

    pub(crate) const fn none() -> Self {
        Self { hosts: BTreeMap::new() }
    }

    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = &ResourceId> {
        self.hosts.keys()
    }

    pub(crate) fn get(&self, id: &ResourceId) -> Option<&SshConnection> {
        self.hosts.get(id)
    }

    /// The same, for one target only.
    pub(crate) fn only(&self, id: &ResourceId) -> Option<Self> {
        let connection = self.hosts.get(id)?.clone();
        Some(Self {
            hosts: BTreeMap::from([(id.clone(), connection)]),
        })
    }

    /// Configuration, known hosts and private keys, for a command whose directory is `work`. Keys of the
    /// agent behind `agent` are used too.
    pub(crate) fn files(&self, work: &Path, keys: &[SecretValue], agent: Option<&Path>) -> Vec<JobFile> {
        let plain = |name: &str, text: String| JobFile {
            path: format!("{DIRECTORY}/{name}"),
            content: FileContent::Plain(text.into_bytes()),
            mode: 0o400,
        };
        let key = |(index, value): (usize, &SecretValue)| JobFile {
            path: format!("{DIRECTORY}/key-{index}"),
            content: FileContent::Secret(with_newline(value)),
            mode: 0o400,
        };
        let mut files = vec![
            plain("config", self.configuration(work, keys.len(), agent)),
            plain("known_hosts", self.known_hosts()),
        ];
        files.extend(keys.iter().enumerate().map(key));
        files
    }

    fn known_hosts(&self) -> String {
        let lines = |(id, connection): (&ResourceId, &SshConnection)| {
            connection
                .host_keys
                .iter()
                .map(|key| format!("{id} {key}\n"))
                .collect::<String>()
        };
        self.hosts.iter().map(lines).collect()
    }

    fn configuration(&self, work: &Path, keys: usize, agent: Option<&Path>) -> String {
        let directory = work.join(DIRECTORY);
        let directory = directory.display();
        let mut text = String::new();
        for (id, connection) in &self.hosts {
            let SshConnection {
                address, port, user, ..
            } = connection;
            let host = format!(
                "Host {id}\n  HostName {}\n  Port {port}\n  User {user}\n  HostKeyAlias {id}\n",
                address.replace('%', "%%")
            );
            text.push_str(&host);
        }
        text.push_str("Host *\n");
        for index in 0..keys {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  IdentityFile {directory}/key-{index}");
        }
        match agent {
            Some(socket) => {
                let _ = writeln!(text, "  IdentityAgent {}\n  IdentitiesOnly no", socket.display());
            }
            None => text.push_str("  IdentityAgent none\n  IdentitiesOnly yes\n"),
        }
        let _ = write!(text, "  UserKnownHostsFile {directory}/known_hosts\n{COMMON}");
        text
    }
}

/// Strict about who answers, silent about what is missing, no side doors.
const COMMON: &str = "\
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  UpdateHostKeys no
  VerifyHostKeyDNS no
  CheckHostIP no
  BatchMode yes
  PasswordAuthentication no
  KbdInteractiveAuthentication no
  GSSAPIAuthentication no
  ForwardAgent no
  ForwardX11 no
  PermitLocalCommand no
  ClearAllForwardings yes
  ConnectTimeout 15
  ServerAliveInterval 15
  ServerAliveCountMax 3
";

/// The path of the configuration, for a command whose directory is `work`.
pub(crate) fn configuration_path(work: &Path) -> std::path::PathBuf {
    work.join(DIRECTORY).join("config")
}

/// OpenSSH refuses a key whose last line does not end.
pub(crate) fn with_newline(value: &SecretValue) -> SecretValue {
    if value.expose().ends_with(b"\n") {
        return value.clone();
    }
    let mut bytes = value.expose().to_vec();
    bytes.push(b'\n');
    SecretValue::new(bytes)
}
