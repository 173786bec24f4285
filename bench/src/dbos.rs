//! DBOS as a peer: a Python process that runs one round when it is asked.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A running peer.
pub struct Dbos {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Dbos {
    /// Starts the peer on `database_url`, with the Python named by `PLATFORM_DBOS_PYTHON`.
    pub fn start(database_url: &str) -> Self {
        let python = std::env::var_os("PLATFORM_DBOS_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/dbos_noop.py");
        let mut child = Command::new(&python)
            .arg(script)
            .args([database_url, &crate::SIZE.to_string(), &crate::OPERATIONS.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot run the peer: {error}", python.display()));
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut peer = Self {
            child,
            stdin,
            stdout: BufReader::new(stdout),
        };
        assert_eq!(peer.line()["ready"], true, "the peer is ready");
        peer
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the peer answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("the peer said {line:?}: {error}"))
    }

    /// Seconds of one round.
    pub fn round(&mut self, what: &str) -> f64 {
        writeln!(self.stdin, "{what}")
            .and_then(|()| self.stdin.flush())
            .expect("the peer listens");
        self.line()["seconds"].as_f64().expect("seconds")
    }
}

impl Drop for Dbos {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
