//! The files of a pack, as they came: a tar archive read with suspicion, or one file after another.
//!
//! Invariants: paths are relative UTF-8 without `.`/`..` segments and unique; only plain files exist (no
//! link, device or sparse file); every limit is checked before the bytes are kept. The digest covers
//! path, mode and content of every file, so it depends neither on an archive's order nor on its times;
//! of a file's mode only "may be executed" counts.

use std::collections::BTreeMap;
use std::io::Read;

use kernel::{CanonicalError, Sha256Digest, canonical_digest};
use serde::Serialize;
use tar::{Archive, Builder, EntryType, Header};

/// Most files of a pack.
pub const MAX_FILES: usize = 10_000;
/// Largest file, in bytes.
pub const MAX_FILE_BYTES: u64 = 16 << 20;
/// Largest pack, in bytes of content.
pub const MAX_PACK_BYTES: u64 = 64 << 20;
/// Longest path, in bytes.
pub const MAX_PATH_BYTES: usize = 512;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub executable: bool,
    pub bytes: Vec<u8>,
}

/// The files of a pack by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    files: BTreeMap<String, File>,
    size: u64,
}

/// Why files do not make a pack.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("the archive is not a readable tar archive")]
    Unreadable(#[source] std::io::Error),
    #[error("{path:?} is {kind}; a pack holds plain files only")]
    NotAFile { path: String, kind: &'static str },
    #[error("{path:?} is not a path inside the pack: relative, without `.` and `..`, at most {MAX_PATH_BYTES} bytes")]
    BadPath { path: String },
    #[error("{path:?} is there twice")]
    Twice { path: String },
    #[error("{path:?} is larger than {MAX_FILE_BYTES} bytes")]
    FileTooLarge { path: String },
    #[error("the pack is larger than {MAX_PACK_BYTES} bytes")]
    TooLarge,
    #[error("the pack has more than {MAX_FILES} files")]
    TooManyFiles,
    #[error("the archive holds nothing")]
    Empty,
    #[error("a path has no canonical form")]
    Canonical(#[from] CanonicalError),
}

#[derive(Serialize)]
struct ManifestEntry<'a> {
    path: &'a str,
    sha256: Sha256Digest,
    mode: &'static str,
}

impl Bundle {
    /// Reads a tar archive.
    ///
    /// # Errors
    /// [`BundleError`] for the first entry that no pack may have.
    pub fn from_tar(bytes: &[u8]) -> Result<Self, BundleError> {
        let mut bundle = Self::default();
        let mut archive = Archive::new(bytes);
        for entry in archive.entries().map_err(BundleError::Unreadable)? {
            let mut entry = entry.map_err(BundleError::Unreadable)?;
            let raw = entry.path_bytes().into_owned();
            let path = String::from_utf8(raw).map_err(|error| BundleError::BadPath {
                path: String::from_utf8_lossy(error.as_bytes()).into_owned(),
            })?;
            match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous => {}
                EntryType::Directory | EntryType::XGlobalHeader => continue,
                other => {
                    return Err(BundleError::NotAFile {
                        path,
                        kind: kind_of(other),
                    });
                }
            }
            if entry.size() > MAX_FILE_BYTES {
                return Err(BundleError::FileTooLarge { path });
            }
            if bundle.size + entry.size() > MAX_PACK_BYTES {
                return Err(BundleError::TooLarge);
            }
            let executable = entry.header().mode().map_err(BundleError::Unreadable)? & 0o111 != 0;
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(BundleError::Unreadable)?;
            let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
            bundle.insert(path, executable, content)?;
        }
        if bundle.files.is_empty() {
            return Err(BundleError::Empty);
        }
        Ok(bundle)
    }

    /// Adds one file.
    ///
    /// # Errors
    /// When its path is no path of a pack or already taken, or a limit is passed.
    pub fn insert(&mut self, path: String, executable: bool, bytes: Vec<u8>) -> Result<(), BundleError> {
        if !is_inner_path(&path) {
            return Err(BundleError::BadPath { path });
        }
        if self.files.contains_key(&path) {
            return Err(BundleError::Twice { path });
        }
        let length = bytes.len() as u64;
        if length > MAX_FILE_BYTES {
            return Err(BundleError::FileTooLarge { path });
        }
        if self.files.len() >= MAX_FILES {
            return Err(BundleError::TooManyFiles);
        }
        self.size += length;
        if self.size > MAX_PACK_BYTES {
            return Err(BundleError::TooLarge);
        }
        self.files.insert(path, File { executable, bytes });
        Ok(())
    }

    /// All files by path.
    #[must_use]
    pub const fn files(&self) -> &BTreeMap<String, File> {
        &self.files
    }

    /// The digest over path, content and mode of all files.
    ///
    /// # Errors
    /// When a path has no canonical form.
    pub fn digest(&self) -> Result<Sha256Digest, BundleError> {
        let manifest: Vec<ManifestEntry<'_>> = self
            .files
            .iter()
            .map(|(path, file)| ManifestEntry {
                path,
                sha256: Sha256Digest::of(&file.bytes),
                mode: if file.executable { "755" } else { "644" },
            })
            .collect();
        Ok(canonical_digest(&manifest)?)
    }

    /// The whole bundle as one tar archive; equal bundles give equal bytes.
    ///
    /// # Errors
    /// When a path does not fit into a tar archive.
    pub fn to_tar(&self) -> Result<Vec<u8>, BundleError> {
        self.below("")
    }

    /// The files under `directory` as a tar archive with paths relative to it. Equal files give equal
    /// bytes: sorted, without owners and times.
    pub(crate) fn below(&self, directory: &str) -> Result<Vec<u8>, BundleError> {
        let mut builder = Builder::new(Vec::new());
        for (path, file) in &self.files {
            let Some(inner) = path.strip_prefix(directory) else {
                continue;
            };
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_size(file.bytes.len() as u64);
            header.set_mode(if file.executable { 0o755 } else { 0o644 });
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            builder
                .append_data(&mut header, inner, file.bytes.as_slice())
                .map_err(BundleError::Unreadable)?;
        }
        builder.into_inner().map_err(BundleError::Unreadable)
    }
}

fn is_inner_path(path: &str) -> bool {
    path.len() <= MAX_PATH_BYTES
        && !path.contains(['\0', '\\', '\n', '\r'])
        && path
            .split('/')
            .all(|segment| !segment.is_empty() && segment != "." && segment != "..")
}

const fn kind_of(entry: EntryType) -> &'static str {
    match entry {
        EntryType::Symlink => "a symbolic link",
        EntryType::Link => "a hard link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        EntryType::GNUSparse => "a sparse file",
        _ => "no plain file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(files: &[(&str, bool, &str)]) -> Bundle {
        let mut bundle = Bundle::default();
        for (path, executable, text) in files {
            bundle
                .insert((*path).to_owned(), *executable, text.as_bytes().to_vec())
                .unwrap();
        }
        bundle
    }

    fn tar_of(entries: &[(&str, EntryType, u64, u32)]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind, mtime, mode) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mtime(*mtime);
            header.set_mode(*mode);
            header.set_size(if *kind == EntryType::Regular { 1 } else { 0 });
            let name = header.as_gnu_mut().unwrap();
            name.name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            builder
                .append(&header, &b"x"[..if *kind == EntryType::Regular { 1 } else { 0 }])
                .unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn the_digest_depends_on_path_mode_and_content_only() {
        let file = EntryType::Regular;
        let one = Bundle::from_tar(&tar_of(&[("a", file, 1, 0o600), ("./b", file, 2, 0o644)])).unwrap();
        let other = Bundle::from_tar(&tar_of(&[("b", file, 9, 0o664), ("a", file, 7, 0o644)])).unwrap();
        assert_eq!(one.digest().unwrap(), other.digest().unwrap());
        let base = bundle(&[("a", false, "x"), ("b", false, "x")]);
        assert_eq!(one.digest().unwrap(), base.digest().unwrap());
        for moved in [
            bundle(&[("a", true, "x"), ("b", false, "x")]),
            bundle(&[("a", false, "x"), ("c", false, "x")]),
            bundle(&[("a", false, "y"), ("b", false, "x")]),
            bundle(&[("a", false, "x")]),
        ] {
            assert_ne!(moved.digest().unwrap(), base.digest().unwrap());
        }
    }

    #[test]
    fn archives_written_here_are_read_back_and_equal_for_equal_files() {
        let long = format!("content/{}/site.yml", "d".repeat(150));
        let original = bundle(&[
            (&long, false, "x"),
            ("pack.yaml", false, "é"),
            ("content/run", true, ""),
        ]);
        let bytes = original.to_tar().unwrap();
        assert_eq!(bytes, original.clone().to_tar().unwrap());
        assert_eq!(Bundle::from_tar(&bytes).unwrap(), original);
        let content = Bundle::from_tar(&original.below("content/").unwrap()).unwrap();
        assert!(content.files().contains_key("run"));
    }

    #[test]
    fn what_could_reach_outside_or_is_no_plain_file_is_refused() {
        for (path, kind) in [
            ("../x", EntryType::Regular),
            ("/etc/passwd", EntryType::Regular),
            ("a/../../x", EntryType::Regular),
            ("a//b", EntryType::Regular),
            ("a", EntryType::Symlink),
            ("a", EntryType::Link),
            ("a", EntryType::Fifo),
            ("a", EntryType::Char),
        ] {
            let read = Bundle::from_tar(&tar_of(&[(path, kind, 0, 0o644)]));
            assert!(
                matches!(read, Err(BundleError::BadPath { .. } | BundleError::NotAFile { .. })),
                "{path} {kind:?}"
            );
        }
        let file = EntryType::Regular;
        assert!(matches!(
            Bundle::from_tar(&tar_of(&[("a", file, 0, 0), ("./a", file, 0, 0)])),
            Err(BundleError::Twice { .. })
        ));
        assert!(matches!(Bundle::from_tar(&[]), Err(BundleError::Empty)));
        assert!(Bundle::from_tar(b"not a tar archive at all").is_err());
    }

    #[test]
    fn a_size_that_is_only_claimed_is_refused_before_it_is_read() {
        let mut header = Header::new_gnu();
        header.set_path("a").unwrap();
        header.set_size(MAX_FILE_BYTES + 1);
        header.set_entry_type(EntryType::Regular);
        header.set_cksum();
        assert!(matches!(
            Bundle::from_tar(header.as_bytes()),
            Err(BundleError::FileTooLarge { .. })
        ));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
            let _ = Bundle::from_tar(&bytes);
        }
    }
}
