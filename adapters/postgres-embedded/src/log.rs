//! The end of the server's log, for errors that must say why it would not start.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::Path,
};

const LINES: usize = 12;
const TAIL: u64 = 8 * 1024;
const LARGEST: u64 = 16 * 1024 * 1024;

/// A position in the log; what comes after it belongs to one start.
pub(crate) fn end_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// A log that has grown large starts anew; one older generation is kept.
pub(crate) fn rotate(path: &Path) {
    if end_of(path) > LARGEST {
        let _ = fs::rename(path, path.with_extension("log.old"));
    }
}

pub(crate) fn last_lines(path: &Path, since: u64) -> String {
    let text = read_tail(path, since).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LINES)..];
    if shown.is_empty() {
        format!("(nothing was written to {})", path.display())
    } else {
        shown.join("\n")
    }
}

fn read_tail(path: &Path, since: u64) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(since.min(length).max(length.saturating_sub(TAIL))))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
