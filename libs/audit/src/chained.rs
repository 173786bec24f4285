//! Facts in their chain.

use chrono::{DateTime, Utc};
use kernel::{CanonicalError, Sha256Digest, canonical_digest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::fact::AuditFact;

/// A fact with its place in the chain of its organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainedFact {
    /// From 1 on, without gaps.
    #[schema(minimum = 1)]
    pub sequence: i64,
    /// The hash of the fact before it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_hash: Option<Sha256Digest>,
    /// SHA-256 over the canonical JSON (RFC 8785) of `chained_at`, `fact`, `previous_hash` (null for the first) and
    /// `sequence`.
    pub hash: Sha256Digest,
    pub chained_at: DateTime<Utc>,
    /// Which fact this was made of.
    pub fact_id: Uuid,
    /// The fact; missing when it is gone, which the hash tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<AuditFact>,
}

/// Part of a chain, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainPage {
    pub links: Vec<ChainedFact>,
    /// Where to read on; missing at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<i64>,
}

/// Where a chain ends: worth keeping elsewhere, because a chain made anew cannot have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeadHash {
    pub sequence: i64,
    pub hash: Sha256Digest,
}

/// A chain's end, and what is beside it, all at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainHead {
    /// None before the first fact was chained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadHash>,
    /// Facts there are.
    pub facts: i64,
    /// Facts that have a place in the chain.
    pub chained: i64,
    /// Facts whose turn is still to come.
    pub waiting: i64,
}

#[derive(Serialize)]
struct Link<'a> {
    sequence: i64,
    previous_hash: Option<Sha256Digest>,
    chained_at: DateTime<Utc>,
    fact: &'a AuditFact,
}

/// The hash of `fact` in its place.
///
/// # Errors
/// The fact has no canonical form: a number beyond 2^53, or NUL in a string.
pub fn link(
    sequence: i64,
    previous_hash: Option<Sha256Digest>,
    chained_at: DateTime<Utc>,
    fact: &AuditFact,
) -> Result<Sha256Digest, CanonicalError> {
    canonical_digest(&Link {
        sequence,
        previous_hash,
        chained_at,
        fact,
    })
}
