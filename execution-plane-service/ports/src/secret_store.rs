//! The port to whatever keeps secrets.
//!
//! Invariants: a reference may be named anywhere, a value never is: no error, no `Debug` and no
//! `Display` of this module shows one. Every way in which resolving fails is told apart, because a
//! sealed store asks for another remedy than a path nobody wrote.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use contracts::SecretRef;
use secrecy::{ExposeSecret, SecretSlice};

/// The bytes of one secret; wiped from memory when the last holder drops it.
#[derive(Clone)]
pub struct SecretValue(Arc<SecretSlice<u8>>);

impl SecretValue {
    /// Takes over `bytes`.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(SecretSlice::from(bytes)))
    }

    /// The bytes themselves: for handing over to a job and for masking, nothing else.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        self.0.expose_secret()
    }
}

impl From<&str> for SecretValue {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes().to_vec())
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

/// Why a reference could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The store is locked: its key is missing or does not open it.
    #[error("the secret store is sealed; {remedy}")]
    Sealed { remedy: String },
    /// The store knows the caller and refuses.
    #[error("reading {reference} is forbidden to this runner")]
    Forbidden { reference: SecretRef },
    /// Nothing was ever written there.
    #[error("there is no secret at vault://{mount}/{path}")]
    PathMissing { mount: String, path: String },
    /// The secret is there, but has no such field.
    #[error("the secret at vault://{mount}/{path} has no field {field:?}")]
    FieldMissing { mount: String, path: String, field: String },
    /// The secret had a time to live, and it is over.
    #[error("the secret at vault://{mount}/{path} has expired")]
    Expired { mount: String, path: String },
    /// The store could not be reached or answered nonsense.
    #[error("the secret store is not available: {detail}")]
    Unavailable {
        detail: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl SecretError {
    /// Whether trying again later may succeed without anybody mending anything in the reference.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Sealed { .. } | Self::Unavailable { .. })
    }
}

/// Resolves references to values.
#[async_trait]
pub trait SecretStore: Send + Sync {
    /// Reads the referenced field.
    ///
    /// # Errors
    /// [`SecretError`]; never with the value in it.
    async fn resolve(&self, reference: &SecretRef) -> Result<SecretValue, SecretError>;
}
