//! SSH keys, made at the moment they are needed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::HostError;

/// Makes a key pair and returns the public half as `type base64`.
pub(crate) fn make(path: &Path, comment: &str) -> Result<String, HostError> {
    let public = public_path(path);
    for old in [path, &public] {
        if old.exists() {
            fs::remove_file(old).map_err(HostError::files("remove", old))?;
        }
    }
    let run = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"])
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .map_err(HostError::files("run ssh-keygen for", path))?;
    if !run.status.success() {
        let said = String::from_utf8_lossy(&run.stderr).trim().to_owned();
        return Err(HostError::Keys {
            path: path.to_owned(),
            said,
        });
    }
    let line = fs::read_to_string(&public).map_err(HostError::files("read", &public))?;
    Ok(line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

fn public_path(path: &Path) -> PathBuf {
    path.with_added_extension("pub")
}
