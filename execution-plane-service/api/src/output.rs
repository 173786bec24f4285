//! Output: ordered chunks, each exactly once.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::attempt::AttemptState;

/// Where a chunk came from. `system` is the runner's own voice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Stdout,
    Stderr,
    System,
}

/// One chunk. Sequences of an attempt are 1, 2, 3, ...; offsets count the bytes of all streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputChunk {
    pub sequence: u64,
    /// Bytes of the attempt's output before this chunk.
    pub byte_offset: u64,
    pub stream: OutputStream,
    /// The runner's clock.
    pub at: DateTime<Utc>,
    /// Raw bytes, masked, as base64; at most 256 KiB before encoding.
    #[serde(with = "crate::base64_bytes")]
    #[schema(value_type = String, content_encoding = "base64")]
    pub data: Bytes,
}

/// `POST /v1/runner/attempts/{id}/output`: chunks in order, without holes. Chunks that are already
/// durable are skipped; a hole is 409 `output_gap` with `expected_sequence`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputUploadRequest {
    pub epoch: u64,
    #[schema(max_items = 4096)]
    pub chunks: Vec<OutputChunk>,
}

/// Durable up to this sequence: the runner may drop these chunks from its spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputAcknowledged {
    pub acknowledged_sequence: u64,
}

/// Query of `GET /v1/attempts/{id}/output`. With `Accept: text/event-stream` the answer is a live
/// tail (`chunk` events with the sequence as id, then one `final`, then the marker `end`); else the raw bytes so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct OutputQuery {
    /// Only chunks after this sequence; `Last-Event-ID` wins over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// The event `final` of a tail, after which no chunk follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputEnd {
    pub state: AttemptState,
    pub last_sequence: u64,
    pub bytes: u64,
}

/// What a tail yields: events `chunk`, then one `final`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum OutputEvent {
    Chunk(OutputChunk),
    End(OutputEnd),
}
