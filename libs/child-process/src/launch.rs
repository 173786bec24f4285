//! What to start and how: a builder that wraps the program so that it dies with its parent.
//!
//! `setpriv` (part of every Debian) sets the death signal after it has changed the account, which
//! is the only order in which the kernel keeps it; then a shell line closes the gap in which the
//! parent may already have died, and replaces itself with the program.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    process::{Command, Stdio},
};

use rustix::process::Signal;
use thiserror::Error;

use crate::{Account, KeptChild};

/// Ends the child with this status when its parent had died before the program could start.
const ORPHANED: &str = r#"[ "$PPID" = "$1" ] || exit 125; shift; exec "$@""#;

#[derive(Debug, Error)]
pub enum LaunchError {
    #[error("cannot find the program {0}")]
    NotFound(PathBuf),
    #[error("cannot start {program}")]
    Spawn { program: String, source: io::Error },
}

/// What a child gets when its parent is gone (or its handle is dropped).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeathSignal {
    Kill,
    Terminate,
    Interrupt,
    Quit,
}

impl DeathSignal {
    fn name(self) -> &'static str {
        match self {
            Self::Kill => "KILL",
            Self::Terminate => "TERM",
            Self::Interrupt => "INT",
            Self::Quit => "QUIT",
        }
    }

    pub(crate) fn signal(self) -> Signal {
        match self {
            Self::Kill => Signal::KILL,
            Self::Terminate => Signal::TERM,
            Self::Interrupt => Signal::INT,
            Self::Quit => Signal::QUIT,
        }
    }
}

/// A program about to be started. Standard input is empty unless said otherwise.
pub struct Launch {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    clear_env: bool,
    directory: Option<PathBuf>,
    account: Option<Account>,
    death: DeathSignal,
    stdin: Stdio,
    stdout: Stdio,
    stderr: Stdio,
}

impl Launch {
    pub fn new(program: impl Into<OsString>, death: DeathSignal) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            clear_env: false,
            directory: None,
            account: None,
            death,
            stdin: Stdio::null(),
            stdout: Stdio::inherit(),
            stderr: Stdio::inherit(),
        }
    }

    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub fn args<I: IntoIterator<Item = S>, S: Into<OsString>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts from an empty environment instead of the parent's.
    pub fn clear_env(mut self) -> Self {
        self.clear_env = true;
        self
    }

    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Runs as another account; only root may ask for that.
    pub fn account(mut self, account: Account) -> Self {
        self.account = Some(account);
        self
    }

    pub fn stdin(mut self, stdin: impl Into<Stdio>) -> Self {
        self.stdin = stdin.into();
        self
    }

    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = stdout.into();
        self
    }

    pub fn stderr(mut self, stderr: impl Into<Stdio>) -> Self {
        self.stderr = stderr.into();
        self
    }

    /// Starts the program on a keeper thread of its own.
    pub fn spawn(self) -> Result<KeptChild, LaunchError> {
        if !self.program_exists() {
            return Err(LaunchError::NotFound(self.program.into()));
        }
        let death = self.death;
        let program = self.program.to_string_lossy().into_owned();
        KeptChild::spawn(self.into_command(), death).map_err(|source| LaunchError::Spawn { program, source })
    }

    /// The wrapping shell would tell of a missing program by a bare exit status only.
    fn program_exists(&self) -> bool {
        if self.program.as_encoded_bytes().contains(&b'/') {
            return PathBuf::from(&self.program).exists();
        }
        let search = self
            .env
            .iter()
            .rev()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.clone());
        let search = search.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        std::env::split_paths(&search).any(|directory| directory.join(&self.program).exists())
    }

    fn into_command(self) -> Command {
        let mut command = Command::new("setpriv");
        if let Some(account) = self.account {
            command
                .arg(format!("--reuid={}", account.uid))
                .arg(format!("--regid={}", account.gid));
            command.arg("--clear-groups");
        }
        command.arg(format!("--pdeathsig={}", self.death.name()));
        command.args(["--", "sh", "-c", ORPHANED, "kept"].map(OsStr::new));
        command
            .arg(std::process::id().to_string())
            .arg(self.program)
            .args(self.args);
        if self.clear_env {
            command.env_clear();
            command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        }
        command.envs(self.env);
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        command.stdin(self.stdin).stdout(self.stdout).stderr(self.stderr);
        command
    }
}
