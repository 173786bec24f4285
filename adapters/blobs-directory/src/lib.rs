//! Blobs in a directory: the embedded twin of an object store.
//!
//! Layout: `ROOT/ORGANIZATION/ab/abcdef...` (the digest, spread over 256 directories), and
//! `ROOT/incoming/UUID` for what is still being written.
//!
//! Invariants: a name under an organization is only ever made by renaming a file that was written
//! whole, verified and synced, so a crash leaves at most a file under `incoming`, which the next
//! start removes; a rename is synced before `put` answers; files are readable by the owner alone.

mod incoming;
mod verified;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use execution_plane_ports::{BlobBody, BlobError, BlobKey, BlobRead, BlobStore, StoredBlob};
use futures::StreamExt;
use kernel::Sha256Digest;
use kernel::id::OrganizationId;
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use incoming::Incoming;

/// Bytes read from a file at once.
const PIECE: usize = 64 * 1024;

/// A directory of blobs. One process writes it; several may read.
#[derive(Debug)]
pub struct DirectoryBlobs {
    root: PathBuf,
}

impl DirectoryBlobs {
    /// Opens `root`, makes it when it is not there, and removes what a crash left half written.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub async fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        let incoming = root.join("incoming");
        make_private(&incoming).await?;
        let mut left = fs::read_dir(&incoming).await?;
        while let Some(entry) = left.next_entry().await? {
            fs::remove_file(entry.path()).await?;
        }
        Ok(Self { root })
    }

    fn path(&self, key: BlobKey) -> PathBuf {
        let digest = key.sha256.to_hex();
        let organization = self.root.join(key.organization.to_string());
        organization.join(&digest[..2]).join(digest)
    }

    /// Gives a finished file its name; answers whether the name is new.
    async fn publish(&self, incoming: Incoming, key: BlobKey) -> io::Result<bool> {
        let path = self.path(key);
        if fs::try_exists(&path).await? {
            incoming.discard().await;
            return Ok(false);
        }
        let directory = path.parent().unwrap_or(&self.root);
        if !fs::try_exists(directory).await? {
            make_private(directory).await?;
            sync_up_to(directory, &self.root).await?;
        }
        incoming.rename_to(&path).await?;
        sync(directory).await?;
        Ok(true)
    }
}

#[async_trait]
impl BlobStore for DirectoryBlobs {
    async fn put(
        &self,
        organization: OrganizationId,
        expected: Option<Sha256Digest>,
        max_bytes: u64,
        mut body: BlobBody,
    ) -> Result<StoredBlob, BlobError> {
        let mut incoming = Incoming::create(&self.root.join("incoming"))
            .await
            .map_err(BlobError::Store)?;
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(BlobError::Body)?;
            if incoming.size() + piece.len() as u64 > max_bytes {
                return Err(BlobError::TooLarge { limit: max_bytes });
            }
            incoming.write(&piece).await.map_err(BlobError::Store)?;
        }
        let (actual, size_bytes) = incoming.finish().await.map_err(BlobError::Store)?;
        if let Some(expected) = expected.filter(|expected| *expected != actual) {
            return Err(BlobError::DigestMismatch { expected, actual });
        }
        let key = BlobKey {
            organization,
            sha256: actual,
        };
        let is_new = self.publish(incoming, key).await.map_err(BlobError::Store)?;
        Ok(StoredBlob {
            key,
            size_bytes,
            is_new,
        })
    }

    async fn get(&self, key: BlobKey, range: Option<Range<u64>>) -> Result<BlobRead, BlobError> {
        let mut file = match File::open(self.path(key)).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(BlobError::Missing(key)),
            opened => opened.map_err(BlobError::Store)?,
        };
        let size_bytes = file.metadata().await.map_err(BlobError::Store)?.len();
        let body = match range {
            None => verified::body(ReaderStream::with_capacity(file, PIECE), key.sha256),
            Some(range) => {
                let start = range.start.min(size_bytes);
                let length = range.end.min(size_bytes).saturating_sub(start);
                file.seek(io::SeekFrom::Start(start)).await.map_err(BlobError::Store)?;
                ReaderStream::with_capacity(file.take(length), PIECE).boxed()
            }
        };
        Ok(BlobRead { size_bytes, body })
    }

    async fn size(&self, key: BlobKey) -> Result<Option<u64>, BlobError> {
        match fs::metadata(self.path(key)).await {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BlobError::Store(error)),
        }
    }
}

async fn make_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .await
}

async fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory).await?.sync_all().await
}

/// Makes newly created directories durable: each entry is synced by syncing its parent.
async fn sync_up_to(directory: &Path, root: &Path) -> io::Result<()> {
    let mut next = directory.parent();
    while let Some(parent) = next.filter(|parent| parent.starts_with(root)) {
        sync(parent).await?;
        next = parent.parent();
    }
    Ok(())
}
