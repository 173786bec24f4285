//! The embedded twin of a secret server: one age-encrypted file, its key beside it with mode 0600.
//!
//! Invariants: plaintext is never on disk; a change replaces the file atomically and concurrent
//! changes wait for one another; a key that others can read does not open the store; no error
//! carries a value. A backup of the file without its key is worthless, and the other way round.

mod document;
mod file;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use contracts::SecretRef;
use execution_plane_ports::{SecretError, SecretStore, SecretValue};

pub use document::SecretListing;
use document::{Document, Lookup};

/// Why the file could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AgeStoreError {
    #[error("{path} exists already; it is not overwritten")]
    Exists { path: PathBuf },
    #[error("{path} cannot be {action}")]
    Io {
        path: PathBuf,
        action: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("{path} can be read by others (mode {mode:o}); chmod 600 it")]
    KeyExposed { path: PathBuf, mode: u32 },
    #[error("{path} holds no age identity (AGE-SECRET-KEY-1…)")]
    KeyMalformed { path: PathBuf },
    #[error("{path} is not opened by its key")]
    NotOpened { path: PathBuf },
    #[error("{path} decrypts to something that is not a secret store")]
    Malformed { path: PathBuf },
    #[error("the secrets could not be encrypted: {0}")]
    Encrypt(String),
    #[error("{0:?} is not a location; write MOUNT/PATH")]
    Location(String),
}

/// A secret store in one encrypted file. Cheap to clone; every read sees the file as it is then.
#[derive(Debug, Clone)]
pub struct AgeSecretStore {
    file: PathBuf,
    key: PathBuf,
}

impl AgeSecretStore {
    /// The store in `file`, its key in `<file>.key`. Nothing is read yet.
    #[must_use]
    pub fn at(file: &Path) -> Self {
        let mut key = file.as_os_str().to_owned();
        key.push(".key");
        Self {
            file: file.to_owned(),
            key: PathBuf::from(key),
        }
    }

    /// Makes a new key and an empty store.
    ///
    /// # Errors
    /// [`AgeStoreError::Exists`] when either file is there; I/O faults.
    pub fn init(file: &Path) -> Result<Self, AgeStoreError> {
        let store = Self::at(file);
        if store.file.exists() {
            return Err(AgeStoreError::Exists { path: store.file });
        }
        let identity = file::create_key(&store.key)?;
        file::seal(&store.file, &identity, &Document::default())?;
        Ok(store)
    }

    /// Opens the store in `file`, making it when neither it nor its key is there.
    ///
    /// # Errors
    /// As [`init`](Self::init) and [`list`](Self::list).
    pub fn open_or_init(file: &Path) -> Result<Self, AgeStoreError> {
        let store = Self::at(file);
        if store.file.exists() {
            store.list().map(|_| store)
        } else {
            Self::init(file)
        }
    }

    /// Writes one field of the secret at `location` (`MOUNT/PATH`); other fields stay. An
    /// `expires_at` applies to the whole secret.
    ///
    /// # Errors
    /// [`AgeStoreError`]; the old content stays in place then.
    pub fn put(
        &self,
        location: &str,
        field: &str,
        value: &[u8],
        expires_at: Option<DateTime<Utc>>,
    ) -> Result<(), AgeStoreError> {
        let reference = parse_location(location, field)?;
        self.change(|document| document.put(&reference, value, expires_at))
    }

    /// Removes the whole secret at `location`; whether it was there.
    ///
    /// # Errors
    /// [`AgeStoreError`].
    pub fn remove(&self, location: &str) -> Result<bool, AgeStoreError> {
        let reference = parse_location(location, "value")?;
        self.change(|document| document.remove(&reference))
    }

    /// Which secrets there are: locations and field names, never values.
    ///
    /// # Errors
    /// [`AgeStoreError`].
    pub fn list(&self) -> Result<Vec<SecretListing>, AgeStoreError> {
        self.read().map(|document| document.list())
    }

    /// The file of the store.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    fn read(&self) -> Result<Document, AgeStoreError> {
        let identity = file::read_key(&self.key)?;
        file::open(&self.file, &identity)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Document) -> T) -> Result<T, AgeStoreError> {
        let _turn = file::wait_for_turn(&self.file)?;
        let identity = file::read_key(&self.key)?;
        let mut document = file::open(&self.file, &identity)?;
        let outcome = change(&mut document);
        file::seal(&self.file, &identity, &document)?;
        Ok(outcome)
    }

    fn resolve_now(&self, reference: &SecretRef) -> Result<SecretValue, SecretError> {
        let document = self.read().map_err(|error| self.sealed(error))?;
        let (mount, path) = (reference.mount.clone(), reference.path.clone());
        match document.look_up(reference, Utc::now()) {
            Lookup::Found(value) => Ok(value),
            Lookup::NoPath => Err(SecretError::PathMissing { mount, path }),
            Lookup::NoField => Err(SecretError::FieldMissing {
                mount,
                path,
                field: reference.field().to_owned(),
            }),
            Lookup::Expired => Err(SecretError::Expired { mount, path }),
        }
    }

    fn sealed(&self, error: AgeStoreError) -> SecretError {
        match error {
            AgeStoreError::Malformed { .. } => SecretError::Unavailable {
                detail: error.to_string(),
                source: Some(Box::new(error)),
            },
            other => SecretError::Sealed {
                remedy: format!(
                    "{other}; {} must be there with mode 0600 and belong to the store",
                    self.key.display()
                ),
            },
        }
    }
}

fn parse_location(location: &str, field: &str) -> Result<SecretRef, AgeStoreError> {
    format!("vault://{location}#{field}")
        .parse()
        .map_err(|_| AgeStoreError::Location(location.to_owned()))
}

#[async_trait]
impl SecretStore for AgeSecretStore {
    async fn resolve(&self, reference: &SecretRef) -> Result<SecretValue, SecretError> {
        let (store, reference) = (self.clone(), reference.clone());
        tokio::task::spawn_blocking(move || store.resolve_now(&reference))
            .await
            .map_err(|error| SecretError::Unavailable {
                detail: "reading the store was interrupted".to_owned(),
                source: Some(Box::new(error)),
            })?
    }
}
