//! The two files: the key (mode 0600, made once) and the encrypted document (replaced atomically).

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use zeroize::{Zeroize, Zeroizing};

use crate::AgeStoreError;
use crate::document::Document;

fn fault(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> AgeStoreError {
    let path = path.to_owned();
    move |source| AgeStoreError::Io { path, action, source }
}

/// Makes a key that only its owner can read.
pub(crate) fn create_key(path: &Path) -> Result<Identity, AgeStoreError> {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(AgeStoreError::Exists { path: path.to_owned() });
        }
        Err(error) => return Err(fault(path, "created")(error)),
    };
    let identity = Identity::generate();
    let text = identity.to_string();
    file.write_all(text.expose_secret().as_bytes())
        .and_then(|()| file.write_all(b"\n"))
        .and_then(|()| file.sync_all())
        .map_err(fault(path, "written"))?;
    Ok(identity)
}

/// Reads the key; one that others can read is refused.
pub(crate) fn read_key(path: &Path) -> Result<Identity, AgeStoreError> {
    let mut file = File::open(path).map_err(fault(path, "opened"))?;
    let mode = file.metadata().map_err(fault(path, "examined"))?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(AgeStoreError::KeyExposed {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = Zeroizing::new(String::new());
    file.read_to_string(&mut text).map_err(fault(path, "read"))?;
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .and_then(|line| Identity::from_str(line).ok())
        .ok_or_else(|| AgeStoreError::KeyMalformed { path: path.to_owned() })
}

/// Decrypts and parses the document.
pub(crate) fn open(path: &Path, identity: &Identity) -> Result<Document, AgeStoreError> {
    let sealed = std::fs::read(path).map_err(fault(path, "read"))?;
    let plain = age::decrypt(identity, &sealed)
        .map(Zeroizing::new)
        .map_err(|_| AgeStoreError::NotOpened { path: path.to_owned() })?;
    // The parser's own message could quote the plaintext, so it is not passed on.
    serde_json::from_slice(&plain).map_err(|_| AgeStoreError::Malformed { path: path.to_owned() })
}

/// Encrypts the document and puts it in place of the old one.
pub(crate) fn seal(path: &Path, identity: &Identity, document: &Document) -> Result<(), AgeStoreError> {
    let mut plain = serde_json::to_vec(document).map_err(|error| AgeStoreError::Encrypt(error.to_string()))?;
    let sealed = age::encrypt(&identity.to_public(), &plain);
    plain.zeroize();
    let sealed = sealed.map_err(|error| AgeStoreError::Encrypt(error.to_string()))?;
    let directory = directory_of(path);
    let mut fresh = tempfile::NamedTempFile::new_in(&directory).map_err(fault(&directory, "written to"))?;
    fresh
        .write_all(&sealed)
        .and_then(|()| fresh.as_file().sync_all())
        .map_err(fault(path, "written"))?;
    fresh
        .persist(path)
        .map_err(|error| fault(path, "replaced")(error.error))?;
    File::open(&directory)
        .and_then(|directory| directory.sync_all())
        .map_err(fault(&directory, "synced"))
}

/// Waits until no other process changes the store; the turn ends when the returned file closes.
pub(crate) fn wait_for_turn(path: &Path) -> Result<File, AgeStoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock = PathBuf::from(name);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&lock)
        .map_err(fault(&lock, "opened"))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
        .map_err(|error| fault(&lock, "locked")(error.into()))?;
    Ok(file)
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
