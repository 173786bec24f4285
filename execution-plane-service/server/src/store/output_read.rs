//! Reading output back, segment by segment.

use bytes::Bytes;
use chrono::DateTime;
use database::Database;
use kernel::Sha256Digest;
use kernel::id::{AttemptId, OrganizationId};

use super::error::StoreError;
use super::output_append::{Chunk, Stream};
use super::words;

const SEGMENTS: &str = "SELECT first_sequence, byte_offset, byte_length, chunks, data FROM output_segments
    WHERE organization_id = $1 AND attempt_id = $2 AND last_sequence > $3
    ORDER BY first_sequence LIMIT $4";
const BUNDLE: &str = "SELECT sha256, size_bytes FROM log_bundles WHERE organization_id = $1 AND attempt_id = $2";

/// Segments read at once; each is at most one call of a runner.
const SEGMENTS_AT_ONCE: i64 = 4;

/// Some chunks that follow one another.
#[derive(Debug, Clone)]
pub struct Segment {
    pub first_sequence: u64,
    pub byte_offset: u64,
    pub byte_length: u64,
    heads: Vec<(u8, i64, usize)>,
    /// Absent once the bundle holds it.
    pub data: Option<Bytes>,
}

impl Segment {
    /// The sequence of its last chunk.
    pub fn last_sequence(&self) -> u64 {
        self.first_sequence + self.heads.len() as u64 - 1
    }

    /// Its chunks, `data` being its bytes.
    pub fn chunks(&self, data: &Bytes) -> Result<Vec<Chunk>, StoreError> {
        let mut chunks = Vec::with_capacity(self.heads.len());
        let mut at = 0;
        for (index, (stream, micros, length)) in self.heads.iter().enumerate() {
            let corrupt = || StoreError::corrupt("output segment")("its parts do not fit together");
            let end = at + length;
            if end > data.len() {
                return Err(corrupt());
            }
            chunks.push(Chunk {
                sequence: self.first_sequence + index as u64,
                byte_offset: self.byte_offset + at as u64,
                stream: Stream::of(*stream).ok_or_else(corrupt)?,
                at: DateTime::from_timestamp_micros(*micros).ok_or_else(corrupt)?,
                data: data.slice(at..end),
            });
            at = end;
        }
        Ok(chunks)
    }
}

/// Up to a few segments with chunks after `after`.
///
/// # Errors
/// The database failed.
pub async fn segments(
    database: &Database,
    organization: OrganizationId,
    attempt: AttemptId,
    after: u64,
) -> Result<Vec<Segment>, StoreError> {
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(SEGMENTS).await?;
    let rows = transaction
        .query(
            &statement,
            &[
                &organization.as_uuid(),
                &attempt.as_uuid(),
                &words::column(after),
                &SEGMENTS_AT_ONCE,
            ],
        )
        .await?;
    transaction.rollback().await?;
    let read = |row: &tokio_postgres::Row| {
        Ok(Segment {
            first_sequence: words::count(row.get(0)),
            byte_offset: words::count(row.get(1)),
            byte_length: words::count(row.get(2)),
            heads: serde_json::from_value(row.get(3)).map_err(StoreError::corrupt("output segment"))?,
            data: row.get::<_, Option<Vec<u8>>>(4).map(Bytes::from),
        })
    };
    rows.iter().map(read).collect()
}

/// The bundle that holds all of an ended attempt's output.
///
/// # Errors
/// The database failed.
pub async fn bundle(
    database: &Database,
    organization: OrganizationId,
    attempt: AttemptId,
) -> Result<Option<(Sha256Digest, u64)>, StoreError> {
    let transaction = database.begin_hot(organization).await?;
    let statement = transaction.prepare_cached(BUNDLE).await?;
    let row = transaction
        .query_opt(&statement, &[&organization.as_uuid(), &attempt.as_uuid()])
        .await?;
    transaction.rollback().await?;
    row.map(|row| Ok((words::digest(row.get(0))?, words::count(row.get(1)))))
        .transpose()
}
