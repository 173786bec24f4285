//! A disk that can be full: the database's directory on a small file system of its own, which a mount
//! namespace gives to whoever runs the tests, root or not.

use std::fs::{self, File};
use std::io::{ErrorKind, Seek as _, Write as _};
use std::path::PathBuf;

use child_process::{DeathSignal, Launch};
use rustix::process::Signal;

use crate::Deployment;
use crate::deployment::{Role, launched};

const PIECE: usize = 1 << 20;

/// The file system, and the one file of it that is not the database's.
pub struct SmallDisk {
    ballast: File,
}

impl SmallDisk {
    /// Takes all room that is left.
    pub fn fill(&mut self) {
        let zeros = vec![0; PIECE];
        let mut length = PIECE;
        while length > 0 {
            match self.ballast.write(&zeros[..length]) {
                Ok(0) => length /= 2,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => length /= 2,
                Err(error) => panic!("the ballast cannot be written: {error}"),
            }
        }
    }

    /// Gives it back.
    pub fn make_room(&mut self) {
        self.ballast.set_len(0).expect("own file");
        self.ballast.rewind().expect("own file");
    }
}

impl Deployment {
    /// Stops the database, copies it to a file system of `bytes` that only its own processes see, and starts
    /// it there.
    pub async fn move_database_to_small_disk(&self, bytes: u64) -> SmallDisk {
        self.signal(Role::Database, Signal::TERM);
        self.ended(Role::Database).await;
        let data = self.data().join("postgres/data");
        let original = self.path().join("original");
        fs::create_dir(&original).expect("own directory");
        let mut launch = Launch::new("bwrap", DeathSignal::Terminate)
            .args(["--die-with-parent", "--dev-bind", "/", "/", "--bind"])
            .args([&data, &original])
            .args(["--perms", "0700", "--size"])
            .arg(bytes.to_string())
            .arg("--tmpfs")
            .arg(&data);
        if rustix::process::getuid().is_root() {
            // PostgreSQL gets an account of its own.
            launch = launch.args(["--cap-add", "ALL"]);
        }
        let copied = r#"cp -a "$0/." "$1/" && shift && exec "$@""#;
        let launch = launch
            .args(["--", "/bin/sh", "-c", copied])
            .args([&original, &data, self.program()])
            .args(self.database_arguments());
        let child = launched(launch, self.path(), Role::Database);
        self.put(Role::Database, child);
        self.database_answers().await;
        // A session of the server sees its disk for as long as it is there.
        let session = self.superuser("control_plane").await;
        let row = session
            .query_one("SELECT pg_backend_pid()", &[])
            .await
            .expect("it is up");
        let backend: i32 = row.get(0);
        let inside = PathBuf::from(format!("/proc/{backend}/root"));
        let path = inside.join(data.strip_prefix("/").expect("absolute")).join("ballast");
        let ballast = File::create(&path).expect("a file beside the database's");
        SmallDisk { ballast }
    }
}
