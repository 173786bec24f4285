//! Appending output: in order, without holes, each chunk once.
//!
//! Output is spooled in the database while an attempt lives, one row a call of the runner, and moved
//! to one blob when the attempt ends. So an acknowledged chunk is as durable as everything else and
//! any replica can take the next one; object stores cannot append, and a directory on one replica's
//! disk would be lost with it. The price is the log written twice, once through WAL.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use database::Database;

use super::error::StoreError;
use super::locked::Output;
use super::report::{Fenced, Reporter};
use super::words;

const INSERT: &str = "INSERT INTO output_segments (organization_id, attempt_id, first_sequence, last_sequence,
        byte_offset, byte_length, chunks, data)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// Which stream a chunk is of, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
    System,
}

impl Stream {
    /// The number in `chunks`.
    pub const fn number(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
            Self::System => 3,
        }
    }

    /// The stream of a number.
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Stdout),
            2 => Some(Self::Stderr),
            3 => Some(Self::System),
            _ => None,
        }
    }
}

/// One chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub sequence: u64,
    pub byte_offset: u64,
    pub stream: Stream,
    pub at: DateTime<Utc>,
    pub data: Bytes,
}

/// Why chunks are not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Fenced(Fenced),
    /// The first of the new chunks is not the next one.
    Gap {
        expected_sequence: u64,
    },
    /// Offsets do not fit together, or not to what is durable.
    Mismatch {
        sequence: u64,
        expected_offset: u64,
    },
    TooLarge {
        limit: u64,
    },
}

/// Appends what is new of `chunks`; answers the last durable sequence.
///
/// # Errors
/// The database failed; the chunks are to be sent again.
pub async fn append(
    database: &Database,
    reporter: Reporter,
    chunks: &[Chunk],
    limit: u64,
) -> Result<Result<u64, Refused>, StoreError> {
    let transaction = database.begin_hot(reporter.organization).await?;
    let locked = match reporter.lock(&transaction).await? {
        Ok(locked) => locked,
        Err(fenced) => return Ok(Err(Refused::Fenced(fenced))),
    };
    let new = match fit(locked.output, chunks) {
        Ok([]) => return Ok(Ok(locked.output.last_sequence)),
        Ok(new) => new,
        Err(refused) => return Ok(Err(refused)),
    };
    if locked.attempt.state.is_terminal() {
        return Ok(Err(Refused::Fenced(Fenced::Ended)));
    }
    let length: u64 = new.iter().map(|chunk| chunk.data.len() as u64).sum();
    if locked.output.bytes + length > limit {
        return Ok(Err(Refused::TooLarge { limit }));
    }
    let heads: Vec<_> = new
        .iter()
        .map(|chunk| (chunk.stream.number(), chunk.at.timestamp_micros(), chunk.data.len()))
        .collect();
    let heads = serde_json::to_value(heads).map_err(StoreError::corrupt("chunk"))?;
    let data: Vec<u8> = new.iter().flat_map(|chunk| chunk.data.iter().copied()).collect();
    let last = locked.output.last_sequence + new.len() as u64;
    let statement = transaction.prepare_cached(INSERT).await?;
    transaction
        .execute(
            &statement,
            &[
                &reporter.organization.as_uuid(),
                &reporter.attempt.as_uuid(),
                &words::column(locked.output.last_sequence + 1),
                &words::column(last),
                &words::column(locked.output.bytes),
                &words::column(length),
                &heads,
                &data,
            ],
        )
        .await?;
    failpoints::hit("execution_plane.output.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.output.after_commit");
    Ok(Ok(last))
}

/// Those of `chunks` that are new, if they fit to what is durable.
fn fit(durable: Output, chunks: &[Chunk]) -> Result<&[Chunk], Refused> {
    let mut previous: Option<(u64, u64)> = None;
    for chunk in chunks {
        let (sequence, offset) = previous.unwrap_or((chunk.sequence, chunk.byte_offset));
        if chunk.sequence != sequence {
            return Err(Refused::Gap {
                expected_sequence: sequence,
            });
        }
        if chunk.byte_offset != offset {
            return Err(Refused::Mismatch {
                sequence,
                expected_offset: offset,
            });
        }
        // What a runner says may be any number; one that is too large fits nowhere, so it is refused.
        let end = offset.saturating_add(chunk.data.len() as u64);
        previous = Some((sequence.saturating_add(1), end));
    }
    let next = durable.last_sequence + 1;
    let known = chunks.iter().take_while(|chunk| chunk.sequence < next).count();
    let new = &chunks[known..];
    let Some(first) = new.first() else {
        return Ok(new);
    };
    if first.sequence != next {
        return Err(Refused::Gap {
            expected_sequence: next,
        });
    }
    if first.byte_offset != durable.bytes {
        return Err(Refused::Mismatch {
            sequence: first.sequence,
            expected_offset: durable.bytes,
        });
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunk(sequence: u64, byte_offset: u64, length: usize) -> Chunk {
        Chunk {
            sequence,
            byte_offset,
            stream: Stream::Stdout,
            at: DateTime::UNIX_EPOCH,
            data: Bytes::from(vec![b'x'; length]),
        }
    }

    #[test]
    fn a_gap_names_the_sequence_that_is_missing() {
        let durable = Output {
            last_sequence: 2,
            bytes: 20,
        };
        let gap = Err(Refused::Gap { expected_sequence: 3 });
        assert_eq!(fit(durable, &[chunk(4, 20, 1)]), gap);
        let inner = [chunk(3, 20, 1), chunk(5, 21, 1)];
        assert_eq!(fit(durable, &inner), Err(Refused::Gap { expected_sequence: 4 }));
        let shifted = Err(Refused::Mismatch {
            sequence: 3,
            expected_offset: 20,
        });
        assert_eq!(fit(durable, &[chunk(3, 19, 1)]), shifted);
        let beyond = [chunk(u64::MAX, u64::MAX, 1), chunk(u64::MAX, u64::MAX, 1)];
        assert_eq!(fit(durable, &beyond), Err(Refused::Gap { expected_sequence: 3 }));
    }

    proptest! {
        #[test]
        fn resent_in_any_cuts_each_chunk_is_taken_once(
            lengths in proptest::collection::vec(0..5_usize, 1..20),
            sends in proptest::collection::vec((0..20_usize, 1..20_usize), 0..40),
        ) {
            let mut all = Vec::new();
            let mut offset = 0;
            for (index, length) in lengths.iter().enumerate() {
                all.push(chunk(index as u64 + 1, offset, *length));
                offset += *length as u64;
            }
            let mut durable = Output::default();
            let mut taken = Vec::new();
            let whole = (0, all.len());
            for (from, count) in sends.into_iter().chain([whole]) {
                let from = from.min(all.len());
                let sent = &all[from..(from + count).min(all.len())];
                match fit(durable, sent) {
                    Ok(new) => {
                        taken.extend(new.iter().map(|chunk| chunk.sequence));
                        durable.last_sequence += new.len() as u64;
                        durable.bytes += new.iter().map(|chunk| chunk.data.len() as u64).sum::<u64>();
                    }
                    Err(Refused::Gap { expected_sequence }) => prop_assert_eq!(expected_sequence, durable.last_sequence + 1),
                    Err(other) => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert_eq!(taken, (1..=all.len() as u64).collect::<Vec<_>>());
            prop_assert_eq!(durable.bytes, offset);
        }
    }
}
