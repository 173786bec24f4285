//! A real OpenSSH server on loopback, with keys made for this one test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub struct Sshd {
    child: Child,
    directory: tempfile::TempDir,
    pub port: u16,
    pub host_key: String,
    pub private_key: String,
    pub user: String,
}

fn program(name: &str) -> PathBuf {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin"]
        .iter()
        .map(|place| Path::new(place).join(name))
        .find(|path| path.exists())
        .unwrap_or_else(|| {
            panic!("{name} is needed for this test (Debian: apt-get install openssh-server openssh-client)")
        })
}

fn make_key(path: &Path) -> (String, String) {
    let status = Command::new(program("ssh-keygen"))
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success());
    let public = std::fs::read_to_string(path.with_extension("pub")).unwrap();
    let public = public.split(' ').take(2).collect::<Vec<_>>().join(" ");
    (std::fs::read_to_string(path).unwrap(), public)
}

impl Sshd {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let (_, host_key) = make_key(&place.join("host"));
        let (private_key, public_key) = make_key(&place.join("client"));
        std::fs::write(place.join("authorized"), public_key).unwrap();
        // The privilege separation directory of a server that was never started as a service.
        drop(std::fs::create_dir_all("/run/sshd"));
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let configuration = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized\nPidFile none\n\
             UsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nUseDNS no\nMaxStartups 500\n\
             MaxSessions 100\n",
            place.display()
        );
        std::fs::write(place.join("config"), configuration).unwrap();
        let child = Command::new(program("sshd"))
            .args(["-D", "-e", "-f"])
            .arg(place.join("config"))
            .stderr(std::fs::File::create(place.join("log")).unwrap())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || std::fs::read_to_string(place.join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "sshd does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
        let user = std::env::var("USER")
            .or_else(|_| std::env::var("LOGNAME"))
            .unwrap_or_else(|_| "root".to_owned());
        Self {
            child,
            directory,
            port,
            host_key,
            private_key,
            user,
        }
    }

    /// A target resource of this server.
    pub fn target(&self, name: &str) -> Value {
        self.target_with(name, self.port, &self.host_key)
    }

    pub fn target_with(&self, name: &str, port: u16, host_key: &str) -> Value {
        json!({
            "resource_id": format!("node/{name}"), "resource_type": "compute.node",
            "connection": {"address": "127.0.0.1", "port": port, "user": self.user, "host_keys": [host_key], "python_interpreter": "/usr/bin/python3"},
        })
    }

    /// A directory for files that tests look at.
    pub fn place(&self) -> &Path {
        self.directory.path()
    }

    /// The server is gone; logins fail from now on.
    pub fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Processes of this machine whose command line holds `needle`.
pub fn running(needle: &str) -> Vec<u32> {
    let own = std::process::id();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| pid != own)
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(needle)
        })
        .collect()
}
