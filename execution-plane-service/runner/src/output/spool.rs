//! The spool of one attempt: chunks in a file, so that an outage costs disk and not memory, and a
//! restarted runner can send what its earlier self could not.
//!
//! A frame is `length u32 | sequence u64 | offset u64 | stream u8 | micros i64 | data`. The last frame
//! of a runner that was killed may be torn; it is dropped then, and its sequence is used again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use execution_plane_api::{OutputChunk, OutputStream};

const HEADER: usize = 29;

/// Where a chunk's frame is.
#[derive(Debug, Clone, Copy)]
struct Place {
    position: u64,
    length: u32,
}

/// Chunks of one attempt, numbered from 1.
pub(crate) struct Spool {
    file: File,
    end: u64,
    places: Vec<Place>,
    bytes: u64,
}

impl Spool {
    /// Opens or makes the spool at `path` and finds the chunks that are whole.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let mut spool = Self {
            file,
            end: 0,
            places: Vec::new(),
            bytes: 0,
        };
        spool.scan()?;
        Ok(spool)
    }

    fn scan(&mut self) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        let mut reader = io::BufReader::new(&self.file);
        let mut header = [0; HEADER];
        while self.end + HEADER as u64 <= size {
            reader.read_exact(&mut header)?;
            let length = u32::from_be_bytes(header[..4].try_into().unwrap_or_default());
            let next = self.end + HEADER as u64 + u64::from(length);
            if next > size {
                break;
            }
            reader.seek_relative(i64::from(length))?;
            self.places.push(Place {
                position: self.end,
                length,
            });
            self.bytes += u64::from(length);
            self.end = next;
        }
        drop(reader);
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        Ok(())
    }

    /// The sequence of the last chunk; 0 when there is none.
    pub(crate) const fn last_sequence(&self) -> u64 {
        self.places.len() as u64
    }

    /// Bytes of output in all chunks.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends the next chunk.
    pub(crate) fn append(&mut self, stream: OutputStream, at: DateTime<Utc>, data: &[u8]) -> io::Result<()> {
        let length = u32::try_from(data.len()).map_err(io::Error::other)?;
        let mut frame = Vec::with_capacity(HEADER + data.len());
        frame.extend(length.to_be_bytes());
        frame.extend((self.last_sequence() + 1).to_be_bytes());
        frame.extend(self.bytes.to_be_bytes());
        frame.push(stream_byte(stream));
        frame.extend(at.timestamp_micros().to_be_bytes());
        frame.extend_from_slice(data);
        self.file.write_all(&frame)?;
        self.places.push(Place {
            position: self.end,
            length,
        });
        self.bytes += u64::from(length);
        self.end += frame.len() as u64;
        Ok(())
    }

    /// The chunks after `sequence`, up to about `budget` bytes but at least one.
    pub(crate) fn after(&self, sequence: u64, budget: usize, most: usize) -> io::Result<Vec<OutputChunk>> {
        let mut chunks = Vec::new();
        let mut taken = 0;
        let first = usize::try_from(sequence).unwrap_or(usize::MAX);
        for place in self.places.iter().skip(first).take(most) {
            let chunk = self.read(*place)?;
            taken += chunk.data.len();
            if taken > budget && !chunks.is_empty() {
                break;
            }
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    fn read(&self, place: Place) -> io::Result<OutputChunk> {
        let mut frame = vec![0; HEADER + place.length as usize];
        self.file.read_exact_at(&mut frame, place.position)?;
        let number = |from: usize| u64::from_be_bytes(frame[from..from + 8].try_into().unwrap_or_default());
        let micros = i64::from_be_bytes(frame[21..29].try_into().unwrap_or_default());
        Ok(OutputChunk {
            sequence: number(4),
            byte_offset: number(12),
            stream: stream_of(frame[20]),
            at: DateTime::from_timestamp_micros(micros).unwrap_or_default(),
            data: Bytes::from(frame).slice(HEADER..),
        })
    }
}

const fn stream_byte(stream: OutputStream) -> u8 {
    match stream {
        OutputStream::Stdout => 1,
        OutputStream::Stderr => 2,
        OutputStream::System => 3,
    }
}

const fn stream_of(byte: u8) -> OutputStream {
    match byte {
        1 => OutputStream::Stdout,
        2 => OutputStream::Stderr,
        _ => OutputStream::System,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_frame_is_dropped_and_its_sequence_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spool");
        let mut spool = Spool::open(&path).unwrap();
        for data in [b"one".as_slice(), b"two \xff"] {
            spool.append(OutputStream::Stdout, Utc::now(), data).unwrap();
        }
        drop(spool);
        let size = std::fs::metadata(&path).unwrap().len();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(size - 1)
            .unwrap();
        let mut spool = Spool::open(&path).unwrap();
        assert_eq!((spool.last_sequence(), spool.bytes()), (1, 3));
        spool.append(OutputStream::Stderr, Utc::now(), b"again").unwrap();
        let chunks = spool.after(0, 1 << 20, 10).unwrap();
        let seen: Vec<_> = chunks
            .iter()
            .map(|c| (c.sequence, c.byte_offset, c.stream, c.data.as_ref()))
            .collect();
        assert_eq!(
            seen,
            [
                (1, 0, OutputStream::Stdout, b"one".as_slice()),
                (2, 3, OutputStream::Stderr, b"again")
            ]
        );
        assert_eq!(
            spool.after(1, 1, 10).unwrap().len(),
            1,
            "one chunk always goes, whatever the budget"
        );
    }
}
