//! Directories for the tests' servers: reachable by the account that the server runs as.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

pub fn root() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).unwrap();
    directory
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub async fn setting(client: &Client, name: &str) -> String {
    client.query_one(&format!("SHOW {name}"), &[]).await.unwrap().get(0)
}

/// Processes of PostgreSQL that work in this data directory.
pub fn processes_in(data: &Path) -> Vec<i32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory == data))
        .filter(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "postgres"))
        .collect()
}
