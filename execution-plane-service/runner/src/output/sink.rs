//! Where every source of an attempt's output writes: each with its own masker, all into one order.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Utc;
use execution_plane_api::OutputStream;
use tokio::sync::Notify;

use super::masker::{MaskSet, StreamMasker};
use super::spool::Spool;
use super::utf8::unfinished;

/// A chunk is cut at this size at the latest.
const CHUNK: usize = 64 * 1024;
/// A line of a labelled source longer than this is not waited for.
const LONGEST_LINE: usize = 16 * 1024;

/// The output of one attempt. Cheap to clone.
#[derive(Clone)]
pub(crate) struct OutputSink(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    spool: Spool,
    pending: Vec<u8>,
    pending_stream: OutputStream,
    limit: u64,
    dropped: u64,
    /// Writing the spool failed (disk full): told in the result, since output cannot tell it.
    broken: Option<String>,
}

impl OutputSink {
    /// Opens the spool at `path`; after `limit` bytes further output is dropped.
    pub(crate) fn open(path: &Path, limit: u64) -> io::Result<Self> {
        let state = State {
            spool: Spool::open(path)?,
            pending: Vec::new(),
            pending_stream: OutputStream::System,
            limit,
            dropped: 0,
            broken: None,
        };
        Ok(Self(Arc::new(Shared {
            state: Mutex::new(state),
            changed: Notify::new(),
        })))
    }

    /// A source of its own. With a label, whole lines are written, each after `label | `.
    pub(crate) fn source(&self, stream: OutputStream, masks: &MaskSet, label: Option<&str>) -> SourceWriter {
        SourceWriter {
            sink: self.clone(),
            stream,
            masker: StreamMasker::new(masks.clone()),
            label: label.map(|label| format!("{label} | ").into_bytes()),
            held: Vec::new(),
        }
    }

    /// One line in the runner's own voice; `text` holds no secret.
    pub(crate) fn say(&self, text: &str) {
        self.append(OutputStream::System, format!("{text}\n").as_bytes());
    }

    /// The last chunk that was cut.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.state().spool.last_sequence()
    }

    /// Bytes that came after the limit, and why the spool failed, if it did.
    pub(crate) fn shortfall(&self) -> (u64, Option<String>) {
        let state = self.state();
        (state.dropped, state.broken.clone())
    }

    /// Cuts what is pending into a chunk.
    pub(crate) fn cut(&self) {
        self.state().cut();
    }

    /// Waits for something to have been written.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Chunks to send after `sequence`.
    pub(crate) fn after(&self, sequence: u64) -> io::Result<Vec<execution_plane_api::OutputChunk>> {
        self.state().spool.after(sequence, 1 << 20, 1024)
    }

    fn append(&self, stream: OutputStream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.state().append(stream, bytes);
        self.0.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn append(&mut self, stream: OutputStream, bytes: &[u8]) {
        let used = self.spool.bytes() + self.pending.len() as u64;
        let room = usize::try_from(self.limit.saturating_sub(used)).unwrap_or(usize::MAX);
        if bytes.len() > room && stream != OutputStream::System {
            if self.dropped == 0 {
                self.push(stream, &bytes[..room]);
                let said = format!(
                    "\noutput limit of {} bytes reached: further output is dropped, the job goes on\n",
                    self.limit
                );
                self.push(OutputStream::System, said.as_bytes());
            }
            self.dropped += (bytes.len() - room) as u64;
            return;
        }
        self.push(stream, bytes);
    }

    fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        if stream != self.pending_stream {
            self.cut();
            self.pending_stream = stream;
        }
        let mut rest = bytes;
        while self.pending.len() + rest.len() >= CHUNK {
            let (piece, after) = rest.split_at(CHUNK - self.pending.len());
            self.pending.extend_from_slice(piece);
            let unfinished = unfinished(&self.pending);
            let tail = self.pending.split_off(self.pending.len() - unfinished);
            self.cut();
            self.pending = tail;
            rest = after;
        }
        self.pending.extend_from_slice(rest);
    }

    fn cut(&mut self) {
        if self.pending.is_empty() || self.broken.is_some() {
            self.pending.clear();
            return;
        }
        if let Err(error) = self.spool.append(self.pending_stream, Utc::now(), &self.pending) {
            tracing::error!(%error, "the output spool cannot be written; output is lost from here on");
            self.broken = Some(error.to_string());
        }
        self.pending.clear();
    }
}

/// One source of output: a pipe of a process.
pub(crate) struct SourceWriter {
    sink: OutputSink,
    stream: OutputStream,
    masker: StreamMasker,
    label: Option<Vec<u8>>,
    /// Masked bytes that wait for the rest of a character or of a line.
    held: Vec<u8>,
}

impl SourceWriter {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.masker.feed(bytes, &mut self.held);
        let ready = match &self.label {
            Some(_) if self.held.len() < LONGEST_LINE => self
                .held
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |place| place + 1),
            _ => self.held.len() - unfinished(&self.held),
        };
        self.release(ready);
    }

    /// The source has ended.
    pub(crate) fn finish(mut self) {
        self.masker.finish(&mut self.held);
        if self.label.is_some() && !self.held.is_empty() && !self.held.ends_with(b"\n") {
            self.held.push(b'\n');
        }
        self.release(self.held.len());
    }

    fn release(&mut self, ready: usize) {
        if ready == 0 {
            return;
        }
        let bytes: Vec<u8> = self.held.drain(..ready).collect();
        match &self.label {
            None => self.sink.append(self.stream, &bytes),
            Some(label) => {
                let lines = bytes.split_inclusive(|&byte| byte == b'\n');
                let labelled: Vec<u8> = lines.flat_map(|line| [label.as_slice(), line].concat()).collect();
                self.sink.append(self.stream, &labelled);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use execution_plane_ports::SecretValue;

    fn sink(limit: u64) -> (tempfile::TempDir, OutputSink) {
        let directory = tempfile::tempdir().unwrap();
        let sink = OutputSink::open(&directory.path().join("spool"), limit).unwrap();
        (directory, sink)
    }

    fn text(sink: &OutputSink) -> Vec<u8> {
        sink.cut();
        let mut all = Vec::new();
        let mut offset = 0;
        for (index, chunk) in sink.after(0).unwrap().into_iter().enumerate() {
            assert_eq!((chunk.sequence, chunk.byte_offset), (index as u64 + 1, offset));
            offset += chunk.data.len() as u64;
            all.extend_from_slice(&chunk.data);
        }
        all
    }

    #[test]
    fn a_secret_split_over_two_writes_of_one_source_is_hidden_and_others_interleave() {
        let (_directory, sink) = sink(1 << 20);
        let masks = MaskSet::of(&[SecretValue::from("hunter2-hunter2")]);
        let mut first = sink.source(OutputStream::Stdout, &masks, Some("web-1"));
        let mut second = sink.source(OutputStream::Stdout, &masks, Some("web-2"));
        first.write(b"pass hunter2-");
        second.write(b"hello\n");
        first.write(b"hunter2 end\nno newline");
        first.finish();
        second.finish();
        assert_eq!(
            text(&sink),
            b"web-2 | hello\nweb-1 | pass ****** end\nweb-1 | no newline\n"
        );
    }

    #[test]
    fn the_limit_stops_the_output_and_says_so() {
        let (_directory, sink) = sink(10);
        let mut source = sink.source(OutputStream::Stdout, &MaskSet::of([]), None);
        source.write(b"0123456789abcdef");
        source.write(b"more");
        source.finish();
        let shown = String::from_utf8(text(&sink)).unwrap();
        assert!(shown.starts_with("0123456789\noutput limit of 10 bytes"), "{shown}");
        assert_eq!(sink.shortfall().0, 10);
    }

    #[test]
    fn chunks_end_between_characters_and_invalid_bytes_are_kept() {
        let (_directory, sink) = sink(1 << 30);
        let mut source = sink.source(OutputStream::Stdout, &MaskSet::of([]), None);
        let mut sent = "é€𝄞".repeat(30_000).into_bytes();
        sent.extend(b"\xff\xfe broken \xe2\x82");
        for piece in sent.chunks(1000) {
            source.write(piece);
        }
        source.finish();
        sink.cut();
        let chunks = sink.after(0).unwrap();
        for chunk in &chunks[..chunks.len() - 1] {
            assert!(std::str::from_utf8(&chunk.data).is_ok());
        }
        assert_eq!(text(&sink), sent);
    }
}
