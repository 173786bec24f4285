//! How domain values are written in columns.

use contracts::{ExitReason, Isolation, JobType, Sensitivity};
use execution_plane_domain::attempt::State;
use kernel::Sha256Digest;

use super::error::StoreError;

/// The state in a column.
pub fn state(word: &str) -> Result<State, StoreError> {
    State::parse(word).ok_or_else(|| unreadable("state", word))
}

/// A reason as its wire word.
pub const fn reason_word(reason: ExitReason) -> &'static str {
    match reason {
        ExitReason::Person => "person",
        ExitReason::Timeout => "timeout",
        ExitReason::LostRunner => "lost_runner",
        ExitReason::Policy => "policy",
        ExitReason::Limit => "limit",
    }
}

/// The reason in a column.
pub fn reason(word: Option<&str>) -> Result<Option<ExitReason>, StoreError> {
    use ExitReason::{Limit, LostRunner, Person, Policy, Timeout};
    let Some(word) = word else { return Ok(None) };
    let found = [Person, Timeout, LostRunner, Policy, Limit]
        .into_iter()
        .find(|reason| reason_word(*reason) == word);
    found.map(Some).ok_or_else(|| unreadable("reason", word))
}

/// The job type in a column.
pub fn job_type(word: &str) -> Result<JobType, StoreError> {
    let found = JobType::ALL.into_iter().find(|job_type| job_type.as_str() == word);
    found.ok_or_else(|| unreadable("job type", word))
}

/// The grade of a rank.
pub fn isolation(rank: i16) -> Result<Isolation, StoreError> {
    match rank {
        0 => Ok(Isolation::Process),
        1 => Ok(Isolation::Sandbox),
        2 => Ok(Isolation::Container),
        _ => Err(unreadable("isolation", &rank.to_string())),
    }
}

/// A sensitivity as its wire word.
pub const fn sensitivity_word(sensitivity: Sensitivity) -> &'static str {
    match sensitivity {
        Sensitivity::Public => "public",
        Sensitivity::Internal => "internal",
        Sensitivity::Secret => "secret",
    }
}

/// The sensitivity in a column.
pub fn sensitivity(word: &str) -> Result<Sensitivity, StoreError> {
    match word {
        "public" => Ok(Sensitivity::Public),
        "internal" => Ok(Sensitivity::Internal),
        "secret" => Ok(Sensitivity::Secret),
        _ => Err(unreadable("sensitivity", word)),
    }
}

/// The digest in a column.
pub fn digest(bytes: &[u8]) -> Result<Sha256Digest, StoreError> {
    <[u8; 32]>::try_from(bytes)
        .map(Sha256Digest::from_bytes)
        .map_err(StoreError::corrupt("digest"))
}

/// A count in a column; the schema keeps them from being negative.
pub fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A number for a column; every limit of ours is far below the column's.
pub fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unreadable(what: &'static str, word: &str) -> StoreError {
    StoreError::corrupt(what)(format!("{word:?} is none"))
}
