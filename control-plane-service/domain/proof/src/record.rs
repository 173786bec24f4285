//! The records of a proof, one kind a link. A record names those it rests on by the digest of their
//! canonical bytes.

use chrono::{DateTime, Utc};
use contracts::{ArtifactRef, Changes, EvidenceRef, ExecutionStatus, ExitSummary, LogRef};
use kernel::id::{AttemptId, CommandId, OperationId, OrganizationId, ResourceUid};
use kernel::{ResourceId, Sha256Digest};
use serde::{Deserialize, Serialize};

/// The version of the shape that is written and read. Format 1 did not say who opened a run.
pub const FORMAT: u32 = 2;

/// The whole document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Version of this shape: [`FORMAT`].
    pub format: u32,
    /// What a record rests on comes before it.
    pub records: Vec<Record>,
    pub root: Root,
    pub signature: Signature,
}

/// What is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    pub operation_id: OperationId,
    pub organization_id: OrganizationId,
    /// Who asked for the operation.
    pub requester: String,
    /// Digests of all records, in order.
    pub records: Vec<Sha256Digest>,
}

/// Ed25519 over the root, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The public key that it was made with. A hint: what counts is the key that the checker has.
    pub public_key: String,
    pub value: String,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Record {
    Pack(Pack),
    Plan(ProvenPlan),
    Run(Run),
    Approval(Approval),
    Attempt(Attempt),
    Attestation(Attestation),
    Evidence(Evidence),
    Update(Update),
}

/// The published pack version that a plan was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    pub name: String,
    pub version: String,
    pub digest: Sha256Digest,
    pub content_digest: Option<Sha256Digest>,
}

/// One plan revision, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenPlan {
    pub revision: u32,
    pub pack: Sha256Digest,
    pub digest: Sha256Digest,
    /// The canonical bytes that `digest` is the SHA-256 of.
    pub document: String,
}

/// One run of the operation: who opened it may be excluded from deciding at the gates that it asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// From 1, which is opened by the one who asked for the operation.
    pub number: u32,
    pub opened_by: String,
    pub opened_at: DateTime<Utc>,
}

/// One gate that a person let pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    pub plan: Sha256Digest,
    /// The run that asked.
    pub run: Sha256Digest,
    pub gate: String,
    /// What the decision was bound to.
    pub gate_digest: Sha256Digest,
    pub decided_by: String,
    pub decided_at: DateTime<Utc>,
    pub comment: Option<String>,
}

/// One attempt, as execution-plane reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    pub attempt_id: AttemptId,
    pub run: u32,
    pub node: String,
    pub plan: Sha256Digest,
    /// Of every gate that the node is behind.
    pub approvals: Vec<Sha256Digest>,
    /// Gates before the node that their own condition ruled out.
    pub gates_not_needed: Vec<String>,
    pub status: ExecutionStatus,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: DateTime<Utc>,
    pub exit: ExitSummary,
    pub logs: Vec<LogRef>,
    pub artifacts: Vec<ArtifactRef>,
}

/// A person's word on a node whose outcome was not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attestation {
    pub plan: Sha256Digest,
    pub run: u32,
    pub node: String,
    pub by: String,
    pub at: DateTime<Utc>,
    pub reason: String,
}

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The attempt or attestation that it comes from.
    pub from: Sha256Digest,
    pub source: Source,
    pub evidence: EvidenceRef,
}

/// What the observation was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "read_from")]
pub enum Source {
    /// A log or artifact of the attempt with this SHA-256.
    Bytes { sha256: Sha256Digest },
    /// A person.
    Person,
}

/// One applied resource update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    pub command_id: CommandId,
    pub plan: Sha256Digest,
    pub run: u32,
    pub node: String,
    pub resource_id: ResourceId,
    pub uid: ResourceUid,
    pub changes: Changes,
    /// The resource's version after it.
    pub version: i64,
    pub evidence: Vec<Sha256Digest>,
}
