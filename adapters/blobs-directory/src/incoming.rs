//! A blob while it is written: a private file that vanishes unless it is given a name.

use std::io;
use std::path::{Path, PathBuf};

use kernel::Sha256Digest;
use sha2::{Digest, Sha256};
use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncWriteExt, BufWriter};

pub struct Incoming {
    path: PathBuf,
    file: BufWriter<File>,
    digest: Sha256,
    size: u64,
    named: bool,
}

impl Incoming {
    pub async fn create(directory: &Path) -> io::Result<Self> {
        let path = directory.join(uuid::Uuid::new_v4().to_string());
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path).await?;
        Ok(Self {
            path,
            file: BufWriter::with_capacity(256 * 1024, file),
            digest: Sha256::new(),
            size: 0,
            named: false,
        })
    }

    pub const fn size(&self) -> u64 {
        self.size
    }

    pub async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.digest.update(piece);
        self.size += piece.len() as u64;
        self.file.write_all(piece).await
    }

    /// Syncs what was written.
    pub async fn finish(&mut self) -> io::Result<(Sha256Digest, u64)> {
        self.file.flush().await?;
        self.file.get_ref().sync_all().await?;
        let digest = std::mem::take(&mut self.digest).finalize();
        Ok((Sha256Digest::from_bytes(digest.into()), self.size))
    }

    pub async fn rename_to(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path).await?;
        self.named = true;
        Ok(())
    }

    /// Removes the file; when that fails the next start removes it.
    pub async fn discard(mut self) {
        self.named = fs::remove_file(&self.path).await.is_ok();
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.named {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
