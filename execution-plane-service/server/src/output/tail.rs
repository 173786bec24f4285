//! Output as a stream of chunks, from any sequence, live until the attempt has ended.
//!
//! Invariants: chunks come in order, each once; the end comes after all of them, because an attempt
//! only ends when its output is durable.

use std::sync::Arc;

use async_stream::try_stream;
use bytes::Bytes;
use execution_plane_domain::attempt::State;
use execution_plane_ports::{BlobError, BlobKey};
use futures::{Stream, TryStreamExt};
use kernel::id::{AttemptId, OrganizationId};
use tokio::time::Instant;

use crate::core::Hot;
use crate::dispatch::signals::{SWEEP, woken};
use crate::store::output_append::Chunk;
use crate::store::output_read::{self, Segment};
use crate::store::{StoreError, attempts};

/// What a tail yields.
#[derive(Debug)]
pub enum Tailed {
    Chunk(Chunk),
    End {
        state: State,
        last_sequence: u64,
        bytes: u64,
    },
}

/// The chunks after `after`, then the end. A caller stops polling when its service closes.
pub fn tail(
    hot: Arc<Hot>,
    organization: OrganizationId,
    attempt: AttemptId,
    after: u64,
) -> impl Stream<Item = Result<Tailed, StoreError>> + Send {
    try_stream! {
        let mut signal = hot.outputs.subscribe((organization, attempt));
        let mut seen = after;
        loop {
            // Read before the segments: when it has ended by now, they are all there.
            let whole = attempts::get(&hot.api, organization, attempt).await?;
            let Some(whole) = whole else { return };
            loop {
                let segments = output_read::segments(&hot.api, organization, attempt, seen).await?;
                if segments.is_empty() {
                    break;
                }
                for segment in segments {
                    let data = bytes_of(&hot, organization, attempt, &segment).await?;
                    for chunk in segment.chunks(&data)? {
                        if chunk.sequence > seen {
                            seen = chunk.sequence;
                            yield Tailed::Chunk(chunk);
                        }
                    }
                }
            }
            if whole.summary.attempt.state.is_terminal() {
                yield Tailed::End {
                    state: whole.summary.attempt.state,
                    last_sequence: whole.last_sequence,
                    bytes: whole.output_bytes,
                };
                return;
            }
            let patience = Instant::now() + SWEEP * 2;
            woken(&mut signal, patience, &api_kit::Closing::default()).await;
        }
    }
}

/// A segment's bytes, from the database or, once compacted, from the bundle.
pub async fn bytes_of(
    hot: &Hot,
    organization: OrganizationId,
    attempt: AttemptId,
    segment: &Segment,
) -> Result<Bytes, StoreError> {
    if let Some(data) = &segment.data {
        return Ok(data.clone());
    }
    let bundle = output_read::bundle(&hot.api, organization, attempt).await?;
    let Some((sha256, _)) = bundle else {
        return Err(StoreError::corrupt("output")("its bytes are gone"));
    };
    let key = BlobKey { organization, sha256 };
    let range = segment.byte_offset..segment.byte_offset + segment.byte_length;
    let failed = StoreError::corrupt::<BlobError>("log bundle");
    let read = hot.blobs.get(key, Some(range)).await.map_err(failed)?;
    let pieces: Vec<Bytes> = read
        .body
        .try_collect()
        .await
        .map_err(StoreError::corrupt("log bundle"))?;
    Ok(pieces.concat().into())
}
