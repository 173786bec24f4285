//! What evidence was read from: a log or an artifact of its attempt, or for a comparison of values the
//! job's own parameters, which the plan holds.

use contracts::{ArtifactRef, EvidenceRef, LogRef};
use control_plane_plan::{Job, NodeKind, Plan};
use kernel::id::AttemptId;
use kernel::{Sha256Digest, canonical_digest};

/// What an attempt has to show.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) attempt_id: AttemptId,
    pub(crate) logs: &'a [LogRef],
    pub(crate) artifacts: &'a [ArtifactRef],
    pub(crate) job: Option<&'a Job>,
}

/// The job that `node` is in `plan`.
pub(crate) fn job_of<'p>(plan: &'p Plan, node: &str) -> Option<&'p Job> {
    match &plan.node(node)?.action {
        NodeKind::Job(job) => Some(job),
        _ => None,
    }
}

/// The digest of the source that `evidence` names, if the attempt has that source; what the evidence
/// says of it itself must agree.
pub(crate) fn digest(evidence: &EvidenceRef, shown: Shown<'_>) -> Option<Sha256Digest> {
    let found = found(evidence, shown)?;
    evidence.sha256.is_none_or(|told| told == found).then_some(found)
}

fn found(evidence: &EvidenceRef, shown: Shown<'_>) -> Option<Sha256Digest> {
    let named = |id: String, uri: &str| evidence.source_ref == uri || evidence.source_ref == id;
    if let Some(log) = shown.logs.iter().find(|log| named(log.id.to_string(), &log.uri)) {
        return Some(log.sha256);
    }
    let mut artifacts = shown.artifacts.iter();
    if let Some(artifact) = artifacts.find(|artifact| named(artifact.id.to_string(), &artifact.uri)) {
        return artifact.sha256;
    }
    let own = format!("job-spec://{}/inputs/parameters", shown.attempt_id);
    let pointer = evidence.source_ref.strip_prefix(&own)?;
    let job = shown.job?;
    if job.deferred.keys().any(|place| overlaps(place, pointer)) {
        // Filled only at dispatch: the plan does not say with what.
        return evidence.sha256;
    }
    let value = serde_json::Value::Object(job.parameters.clone());
    canonical_digest(value.pointer(pointer)?).ok()
}

/// Whether one pointer is the other or leads into it.
fn overlaps(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
