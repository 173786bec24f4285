//! The port to where bytes are kept: contents, artifacts and log bundles.
//!
//! Invariants: a blob is addressed by (organization, SHA-256 of its bytes), so it never changes and
//! no two organizations share one, which is why none can learn what another has; what `put` answered
//! is durable; bytes that do not have the digest that was named are never visible; memory does not
//! grow with a blob's size. Names and references live in the database.

use std::ops::Range;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use kernel::Sha256Digest;
use kernel::id::OrganizationId;

/// Bytes on their way, in pieces.
pub type BlobBody = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// The address of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey {
    pub organization: OrganizationId,
    pub sha256: Sha256Digest,
}

/// A blob that is durable now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBlob {
    pub key: BlobKey,
    pub size_bytes: u64,
    /// The organization did not have it before.
    pub is_new: bool,
}

/// A blob, or a range of one, while it is read.
pub struct BlobRead {
    /// The size of the whole blob.
    pub size_bytes: u64,
    /// A whole blob is verified while it is read: a body whose digest is wrong ends in an error.
    pub body: BlobBody,
}

/// Why a blob could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error("there is no blob {}", .0.sha256)]
    Missing(BlobKey),
    #[error("the bytes have the digest {actual}, not {expected}")]
    DigestMismatch {
        expected: Sha256Digest,
        actual: Sha256Digest,
    },
    #[error("the blob is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    /// The sender's stream broke off; nothing was stored.
    #[error("the bytes broke off")]
    Body(#[source] std::io::Error),
    #[error("the blob store failed")]
    Store(#[source] std::io::Error),
}

/// Keeps bytes by digest.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Stores `body`, durably, at most `max_bytes` of it, and checks it against `expected` when that
    /// is given. A blob that is there already is left as it is.
    ///
    /// # Errors
    /// See [`BlobError`]; on any of them nothing new is visible.
    async fn put(
        &self,
        organization: OrganizationId,
        expected: Option<Sha256Digest>,
        max_bytes: u64,
        body: BlobBody,
    ) -> Result<StoredBlob, BlobError>;

    /// Reads a blob, whole or a range of it (cut to its size).
    ///
    /// # Errors
    /// [`BlobError::Missing`], or the store's failure.
    async fn get(&self, key: BlobKey, range: Option<Range<u64>>) -> Result<BlobRead, BlobError>;

    /// The size of a blob; `None` when there is none.
    ///
    /// # Errors
    /// The store's failure.
    async fn size(&self, key: BlobKey) -> Result<Option<u64>, BlobError>;
}
