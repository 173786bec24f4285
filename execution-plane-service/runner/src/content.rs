//! Content bundles: fetched under the lease, verified by digest, unpacked once, shared read-only.
//!
//! Invariants: a bundle can only write below its own directory (no absolute path, no `..`, no link
//! that leads out, no device); a directory under a digest's name is complete, because it is renamed
//! there as the last step.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use kernel::Sha256Digest;

/// Most bytes and entries of an unpacked bundle.
const MOST_BYTES: u64 = 512 << 20;
const MOST_ENTRIES: usize = 20_000;

/// Why a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContentError {
    #[error("the content bundle's digest is {found}, not the pinned {pinned}")]
    Digest { pinned: Sha256Digest, found: Sha256Digest },
    #[error("the content bundle is refused: {0}")]
    Unsafe(String),
    #[error("the content bundle cannot be unpacked")]
    Io(#[from] io::Error),
}

/// Where the bundle of `digest` is, when it was unpacked before.
pub(crate) fn unpacked(root: &Path, digest: &Sha256Digest) -> Option<PathBuf> {
    let place = root.join(digest.to_hex());
    place.is_dir().then_some(place)
}

/// Verifies and unpacks `bytes` below `root`.
pub(crate) fn unpack(root: &Path, pinned: &Sha256Digest, bytes: &[u8]) -> Result<PathBuf, ContentError> {
    let found = Sha256Digest::of(bytes);
    if found != *pinned {
        return Err(ContentError::Digest { pinned: *pinned, found });
    }
    std::fs::create_dir_all(root)?;
    let staging = tempfile::Builder::new().prefix("incoming-").tempdir_in(root)?;
    let tree = staging.path().join("tree");
    std::fs::create_dir(&tree)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        extract(flate2::read::GzDecoder::new(bytes), &tree)?;
    } else {
        extract(bytes, &tree)?;
    }
    let place = root.join(pinned.to_hex());
    match std::fs::rename(&tree, &place) {
        Ok(()) => Ok(place),
        // Another attempt was quicker with the same bundle.
        Err(_) if place.is_dir() => Ok(place),
        Err(error) => Err(error.into()),
    }
}

fn extract(reader: impl Read, tree: &Path) -> Result<(), ContentError> {
    let mut archive = tar::Archive::new(reader.take(MOST_BYTES));
    let mut total = 0;
    for (index, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        total += entry.size();
        if index >= MOST_ENTRIES || total > MOST_BYTES {
            return Err(ContentError::Unsafe("it is too large".to_owned()));
        }
        let relative = inside(&path)?;
        if relative.as_os_str().is_empty() {
            continue;
        }
        let place = tree.join(&relative);
        match entry.header().entry_type() {
            tar::EntryType::Directory => std::fs::create_dir_all(&place)?,
            tar::EntryType::Regular => write_file(&mut entry, &place)?,
            tar::EntryType::XGlobalHeader => {}
            other => {
                let detail = format!(
                    "{} is a {other:?}; only files and directories are allowed",
                    path.display()
                );
                return Err(ContentError::Unsafe(detail));
            }
        }
    }
    Ok(())
}

/// No link is ever made, so a plain relative path cannot lead out of the tree.
fn inside(path: &Path) -> Result<PathBuf, ContentError> {
    let mut relative = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => relative.push(name),
            Component::CurDir => {}
            _ => {
                return Err(ContentError::Unsafe(format!(
                    "{} leads out of the bundle",
                    path.display()
                )));
            }
        }
    }
    Ok(relative)
}

fn write_file(entry: &mut tar::Entry<'_, impl Read>, place: &Path) -> Result<(), ContentError> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(parent) = place.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
    let mode = if executable { 0o755 } else { 0o644 };
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(place)?;
    io::copy(entry, &mut file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(build: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        build(&mut builder);
        builder.into_inner().unwrap()
    }

    /// Writes the path into the header as it is, which the builder's own checks would refuse.
    fn raw_file(builder: &mut tar::Builder<Vec<u8>>, path: &str, kind: tar::EntryType, link: &str, data: &[u8]) {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_size(data.len() as u64);
        header.set_mode(0o755);
        header.set_entry_type(kind);
        header.set_cksum();
        builder.append(&header, data).unwrap();
    }

    fn unpack_here(bytes: &[u8]) -> (tempfile::TempDir, Result<PathBuf, ContentError>) {
        let root = tempfile::tempdir().unwrap();
        let result = unpack(&root.path().join("content"), &Sha256Digest::of(bytes), bytes);
        (root, result)
    }

    #[test]
    fn files_and_directories_come_out_as_they_went_in() {
        let bytes = archive(|builder| {
            raw_file(
                builder,
                "roles/web/tasks/main.yml",
                tar::EntryType::Regular,
                "",
                b"- debug:\n",
            );
            raw_file(builder, "./run.sh", tar::EntryType::Regular, "", b"#!/bin/sh\n");
        });
        let (_root, place) = unpack_here(&bytes);
        let place = place.unwrap();
        assert_eq!(
            std::fs::read(place.join("roles/web/tasks/main.yml")).unwrap(),
            b"- debug:\n"
        );
        assert_eq!(
            unpacked(place.parent().unwrap(), &Sha256Digest::of(&bytes)),
            Some(place)
        );
    }

    #[test]
    fn nothing_leads_out_of_the_bundle() {
        for (path, kind, link) in [
            ("../evil", tar::EntryType::Regular, ""),
            ("a/../../evil", tar::EntryType::Regular, ""),
            ("/tmp/evil", tar::EntryType::Regular, ""),
            ("link", tar::EntryType::Symlink, "/etc/passwd"),
            ("link", tar::EntryType::Symlink, "inside"),
            ("hard", tar::EntryType::Link, "/etc/passwd"),
            ("pipe", tar::EntryType::Fifo, ""),
            ("device", tar::EntryType::Char, ""),
        ] {
            let bytes = archive(|builder| raw_file(builder, path, kind, link, b""));
            let (root, result) = unpack_here(&bytes);
            assert!(matches!(result, Err(ContentError::Unsafe(_))), "{path}");
            assert_eq!(
                std::fs::read_dir(root.path().join("content")).unwrap().count(),
                0,
                "{path} left something"
            );
        }
    }

    #[test]
    fn other_bytes_than_the_pinned_ones_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let result = unpack(root.path(), &Sha256Digest::of(b"other"), &archive(|_| {}));
        assert!(matches!(result, Err(ContentError::Digest { .. })));
    }
}
