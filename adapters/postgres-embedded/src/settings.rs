//! What the server is told: where to listen, how durable to be, and the settings that suit many
//! short transactions on a small machine.

use std::{path::PathBuf, time::Duration};

/// Whether a commit survives the loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Every commit is on disk before it is confirmed.
    #[default]
    Full,
    /// For tests only: a crash of the *machine* may lose or damage everything; a crash of the
    /// server does not.
    Off,
}

/// Where the server listens beside its private socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listen {
    #[default]
    SocketOnly,
    /// A free port of 127.0.0.1, chosen at the start and kept.
    AnyLoopbackPort,
    LoopbackPort(u16),
}

/// How to run one server. `Config::new` gives what production-like use wants.
#[derive(Debug, Clone)]
pub struct Config {
    /// Holds the data, the password file, the log and the lock.
    pub root: PathBuf,
    /// The directory of `initdb` and `postgres`; searched for when absent.
    pub binaries: Option<PathBuf>,
    pub listen: Listen,
    pub durability: Durability,
    pub max_connections: u16,
    /// Further settings by PostgreSQL's own names; they win over the built-in ones.
    pub settings: Vec<(String, String)>,
    /// How long a start may take, crash recovery included.
    pub start_timeout: Duration,
}

impl Config {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            binaries: None,
            listen: Listen::default(),
            durability: Durability::default(),
            max_connections: 200,
            settings: Vec::new(),
            start_timeout: Duration::from_secs(120),
        }
    }

    /// The same, with durability off: what tests want.
    pub fn for_tests(root: impl Into<PathBuf>) -> Self {
        Self {
            durability: Durability::Off,
            max_connections: 400,
            ..Self::new(root)
        }
    }

    /// `name=value` for each setting, the caller's last.
    pub(crate) fn server_settings(&self, socket_directory: &str, port: u16) -> Vec<String> {
        let listens = self.listen != Listen::SocketOnly;
        let durable = if self.durability == Durability::Full {
            "on"
        } else {
            "off"
        };
        let mut settings = vec![
            format!("unix_socket_directories={socket_directory}"),
            format!("listen_addresses={}", if listens { "127.0.0.1" } else { "" }),
            format!("port={port}"),
            format!("max_connections={}", self.max_connections),
            format!("fsync={durable}"),
            format!("full_page_writes={durable}"),
            "synchronous_commit=on".to_owned(),
        ];
        settings.extend(FIXED.iter().map(|setting| (*setting).to_owned()));
        settings.extend(self.settings.iter().map(|(name, value)| format!("{name}={value}")));
        settings
    }
}

/// Statement texts and parameters stay out of the log, because either may hold a secret.
const FIXED: [&str; 17] = [
    "unix_socket_permissions=0700",
    "password_encryption=scram-sha-256",
    "log_parameter_max_length=0",
    "log_parameter_max_length_on_error=0",
    "log_min_error_statement=panic",
    "logging_collector=off",
    "log_timezone=UTC",
    "timezone=UTC",
    "shared_buffers=128MB",
    "max_wal_size=2GB",
    "checkpoint_timeout=15min",
    "wal_compression=on",
    "random_page_cost=1.1",
    "jit=off",
    "max_parallel_workers_per_gather=0",
    "autovacuum_naptime=10s",
    "autovacuum_vacuum_scale_factor=0.05",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listens_on_no_address_unless_asked() {
        let config = Config::new("/r");
        assert!(
            config
                .server_settings("/s", 5432)
                .contains(&"listen_addresses=".to_owned())
        );
        let config = Config {
            listen: Listen::LoopbackPort(6000),
            ..config
        };
        assert!(
            config
                .server_settings("/s", 6000)
                .contains(&"listen_addresses=127.0.0.1".to_owned())
        );
    }

    #[test]
    fn commits_are_synced_unless_durability_is_off() {
        assert!(
            Config::new("/r")
                .server_settings("/s", 1)
                .contains(&"synchronous_commit=on".to_owned())
        );
        assert!(
            Config::for_tests("/r")
                .server_settings("/s", 1)
                .contains(&"fsync=off".to_owned())
        );
    }

    #[test]
    fn the_callers_settings_come_last_and_so_win() {
        let config = Config {
            settings: vec![("jit".into(), "on".into())],
            ..Config::new("/r")
        };
        assert_eq!(
            config.server_settings("/s", 1).last().map(String::as_str),
            Some("jit=on")
        );
    }
}
