//! The log bundle: all output of an attempt as one blob, the raw bytes of all streams in order.
//!
//! Made before the transaction that ends the attempt, so that the end is only seen when the bundle
//! is durable. Making it again gives the same blob.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use contracts::LogRef;
use database::Database;
use execution_plane_ports::{BlobError, BlobStore};
use futures::{StreamExt, TryStreamExt, stream};
use kernel::id::{AttemptId, OrganizationId};
use uuid::Uuid;

use crate::store::StoreError;
use crate::store::output_read::{self, Segment};

/// What was seen on the way.
#[derive(Default)]
struct Seen {
    last_sequence: AtomicU64,
    line_ends: AtomicU64,
    /// 1 when the last byte ended no line.
    open_line: AtomicU64,
}

impl Seen {
    fn note(&self, segment: &Segment, data: &[u8]) {
        self.last_sequence.store(segment.last_sequence(), Ordering::Relaxed);
        let ends = data.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.line_ends.fetch_add(ends, Ordering::Relaxed);
        if let Some(last) = data.last() {
            self.open_line.store(u64::from(*last != b'\n'), Ordering::Relaxed);
        }
    }
}

/// Stores the bundle; answers it and the last sequence in it. `None` when there is no output, or
/// when the attempt has a bundle already (and so has ended).
///
/// # Errors
/// The database or the blob store failed.
pub async fn bundle(
    database: &Database,
    blobs: &dyn BlobStore,
    organization: OrganizationId,
    attempt: AttemptId,
) -> Result<Option<(LogRef, u64)>, StoreError> {
    if output_read::bundle(database, organization, attempt).await?.is_some() {
        return Ok(None);
    }
    let first = output_read::segments(database, organization, attempt, 0).await?;
    if first.is_empty() {
        return Ok(None);
    }
    let seen = Arc::new(Seen::default());
    let noted = seen.clone();
    let pages = stream::try_unfold(
        (database.clone(), Some(first), 0),
        move |(database, page, after)| async move {
            let page = match page {
                Some(page) => page,
                None => output_read::segments(&database, organization, attempt, after).await?,
            };
            let Some(after) = page.last().map(Segment::last_sequence) else {
                return Ok(None);
            };
            Ok::<_, StoreError>(Some((page, (database, None, after))))
        },
    );
    let body = pages
        .map_ok(|page| stream::iter(page.into_iter().map(Ok::<_, StoreError>)))
        .try_flatten()
        .map(move |segment| {
            let segment = segment.map_err(std::io::Error::other)?;
            let data: Bytes = segment
                .data
                .clone()
                .ok_or_else(|| std::io::Error::other("the output was compacted meanwhile"))?;
            noted.note(&segment, &data);
            Ok(data)
        })
        .boxed();
    failpoints::hit("execution_plane.log_blob.before_write");
    let stored = blobs
        .put(organization, None, u64::MAX, body)
        .await
        .map_err(StoreError::corrupt::<BlobError>("output"))?;
    failpoints::hit("execution_plane.log_blob.after_write");
    let log = LogRef {
        id: Uuid::now_v7(),
        uri: format!("s3://platform-logs/attempts/{attempt}/output.log"),
        sha256: stored.key.sha256,
        size_bytes: stored.size_bytes,
        lines: seen.line_ends.load(Ordering::Relaxed) + seen.open_line.load(Ordering::Relaxed),
    };
    Ok(Some((log, seen.last_sequence.load(Ordering::Relaxed))))
}
