//! Checking a proof, offline, with nothing but the document and the platform's public key.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use contracts::EvidenceResult;
use control_plane_plan::{NodeKind, PlanDocument, gate_digest};
use kernel::id::OperationId;
use kernel::{DottedName, ResourceId, Sha256Digest, canonical_bytes, canonical_digest};

use crate::gates;
use crate::record::{
    Approval, Attempt, Attestation, Evidence, FORMAT, Pack, Proof, ProvenPlan, Record, Root, Run, Source, Update,
};
use crate::sign::{PublicKey, holds};
use crate::source::{self, Shown};

/// What a proof proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub operation_id: OperationId,
    pub requester: String,
    /// Digest of each plan revision, by number.
    pub plans: BTreeMap<u32, Sha256Digest>,
    /// Who opened each run, by number.
    pub runs: BTreeMap<u32, String>,
    /// Gate, who let it pass, and when.
    pub approvals: Vec<(String, String, DateTime<Utc>)>,
    pub attempts: usize,
    pub evidence: usize,
    pub capabilities: Vec<ProvenCapability>,
}

/// A capability that was provided and proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenCapability {
    pub resource_id: ResourceId,
    pub capability: DottedName,
    /// The resource's version that provides it.
    pub version: i64,
    /// SHA-256 of what the passed evidence was read from; none for a person's word alone.
    pub sources: Vec<Sha256Digest>,
}

/// The first thing wrong with a proof. `record` counts from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the document is no proof: {0}")]
    Unreadable(String),
    #[error("the document is not in its canonical form: a byte was changed, or it was written anew")]
    NotCanonical,
    #[error("the proof has format {0}; this version reads {FORMAT}")]
    Format(u32),
    #[error("record {record} is not the one that the root names: it was changed")]
    RecordChanged { record: usize },
    #[error("the root names {named} records, the document has {found}")]
    RecordCount { named: usize, found: usize },
    #[error("the root is not signed with the given key")]
    Signature,
    #[error("record {record} rests on a record that does not come before it, or is of another kind")]
    BrokenLink { record: usize },
    #[error("record {record}: {problem}")]
    Untrue { record: usize, problem: String },
}

/// Checks `document` against `key`.
///
/// # Errors
/// The first [`Fault`] found.
pub fn verify(document: &[u8], key: &PublicKey) -> Result<Verified, Fault> {
    let proof: Proof = serde_json::from_slice(document).map_err(|error| Fault::Unreadable(error.to_string()))?;
    let canonical = canonical_bytes(&proof).map_err(|error| Fault::Unreadable(error.to_string()))?;
    if canonical != document {
        return Err(Fault::NotCanonical);
    }
    if proof.format != FORMAT {
        return Err(Fault::Format(proof.format));
    }
    records_are_those_of_the_root(&proof)?;
    let root = canonical_bytes(&proof.root).map_err(|error| Fault::Unreadable(error.to_string()))?;
    if proof.signature.public_key != hex::encode(key) || !holds(key, &root, &proof.signature.value) {
        return Err(Fault::Signature);
    }
    Reader::new(&proof.root).read(&proof.records)
}

fn records_are_those_of_the_root(proof: &Proof) -> Result<(), Fault> {
    if proof.records.len() != proof.root.records.len() {
        return Err(Fault::RecordCount {
            named: proof.root.records.len(),
            found: proof.records.len(),
        });
    }
    for (record, (content, named)) in proof.records.iter().zip(&proof.root.records).enumerate() {
        if canonical_digest(content).ok() != Some(*named) {
            return Err(Fault::RecordChanged { record });
        }
    }
    Ok(())
}

/// Reads records in order; what a record rests on has been read and found true before it.
struct Reader<'a> {
    root: &'a Root,
    /// Position of the record that is being read.
    at: usize,
    packs: BTreeMap<Sha256Digest, &'a Pack>,
    plans: BTreeMap<Sha256Digest, (&'a ProvenPlan, PlanDocument)>,
    runs: BTreeMap<Sha256Digest, &'a Run>,
    approvals: BTreeMap<Sha256Digest, &'a Approval>,
    attempts: BTreeMap<Sha256Digest, &'a Attempt>,
    attestations: BTreeMap<Sha256Digest, &'a Attestation>,
    evidence: BTreeMap<Sha256Digest, &'a Evidence>,
    capabilities: Vec<ProvenCapability>,
}

impl<'a> Reader<'a> {
    const fn new(root: &'a Root) -> Self {
        Self {
            root,
            at: 0,
            packs: BTreeMap::new(),
            plans: BTreeMap::new(),
            runs: BTreeMap::new(),
            approvals: BTreeMap::new(),
            attempts: BTreeMap::new(),
            attestations: BTreeMap::new(),
            evidence: BTreeMap::new(),
            capabilities: Vec::new(),
        }
    }

    fn read(mut self, records: &'a [Record]) -> Result<Verified, Fault> {
        for (at, (record, digest)) in records.iter().zip(&self.root.records).enumerate() {
            self.at = at;
            match record {
                Record::Pack(pack) => {
                    self.packs.insert(*digest, pack);
                }
                Record::Plan(plan) => self.plan(*digest, plan)?,
                Record::Run(run) => self.run(*digest, run)?,
                Record::Approval(approval) => self.approval(*digest, approval)?,
                Record::Attempt(attempt) => self.attempt(*digest, attempt)?,
                Record::Attestation(attestation) => self.attestation(*digest, attestation)?,
                Record::Evidence(evidence) => self.evidence(*digest, evidence)?,
                Record::Update(update) => self.update(update)?,
            }
        }
        Ok(self.verified())
    }

    fn verified(self) -> Verified {
        let approvals = self.approvals.into_values();
        Verified {
            operation_id: self.root.operation_id,
            requester: self.root.requester.clone(),
            plans: self
                .plans
                .into_values()
                .map(|(plan, _)| (plan.revision, plan.digest))
                .collect(),
            runs: self
                .runs
                .into_values()
                .map(|run| (run.number, run.opened_by.clone()))
                .collect(),
            approvals: approvals
                .map(|a| (a.gate.clone(), a.decided_by.clone(), a.decided_at))
                .collect(),
            attempts: self.attempts.len(),
            evidence: self.evidence.len(),
            capabilities: self.capabilities,
        }
    }

    fn broken(&self) -> Fault {
        Fault::BrokenLink { record: self.at }
    }

    fn untrue(&self, problem: impl Into<String>) -> Fault {
        Fault::Untrue {
            record: self.at,
            problem: problem.into(),
        }
    }

    fn require(&self, holds: bool, problem: &str) -> Result<(), Fault> {
        if holds { Ok(()) } else { Err(self.untrue(problem)) }
    }

    fn document(&self, plan: Sha256Digest) -> Result<&PlanDocument, Fault> {
        self.plans
            .get(&plan)
            .map(|(_, document)| document)
            .ok_or_else(|| self.broken())
    }

    fn plan(&mut self, digest: Sha256Digest, plan: &'a ProvenPlan) -> Result<(), Fault> {
        let pack = self.packs.get(&plan.pack).copied().ok_or_else(|| self.broken())?;
        let document = PlanDocument::open(plan.document.clone().into_bytes(), plan.digest)
            .map_err(|error| self.untrue(error.to_string()))?;
        let scenario = &document.plan().scenario;
        let same_pack = scenario.pack == pack.name
            && scenario.pack_version == pack.version
            && scenario.pack_digest == pack.digest
            && scenario.content_digest == pack.content_digest;
        self.require(same_pack, "the plan was made from another pack")?;
        let twice = self.plans.values().any(|(known, _)| known.revision == plan.revision);
        self.require(!twice, "the plan revision is there twice")?;
        self.plans.insert(digest, (plan, document));
        Ok(())
    }

    fn run(&mut self, digest: Sha256Digest, run: &'a Run) -> Result<(), Fault> {
        let twice = self.has_run(run.number);
        self.require(!twice, "the run is there twice")?;
        let first_is_the_requesters = run.number != 1 || run.opened_by == self.root.requester;
        self.require(
            first_is_the_requesters,
            "run 1 was opened by another than the requester",
        )?;
        self.runs.insert(digest, run);
        Ok(())
    }

    fn has_run(&self, number: u32) -> bool {
        self.runs.values().any(|run| run.number == number)
    }

    fn approval(&mut self, digest: Sha256Digest, approval: &'a Approval) -> Result<(), Fault> {
        let document = self.document(approval.plan)?;
        let covered = gate_digest(document.plan(), &approval.gate).ok().flatten();
        self.require(
            covered == Some(approval.gate_digest),
            "the approval is bound to something else than what the gate covers",
        )?;
        let Some(NodeKind::Gate(gate)) = document.plan().node(&approval.gate).map(|node| &node.action) else {
            return Err(self.untrue("the approval is for no gate of the plan"));
        };
        let run = *self.runs.get(&approval.run).ok_or_else(|| self.broken())?;
        let asked = approval.decided_at >= run.opened_at;
        self.require(asked, "the approval was given before the run that asked for it")?;
        let requested = approval.decided_by == self.root.requester || approval.decided_by == run.opened_by;
        let own = gate.requester_excluded && requested;
        self.require(!own, "a requester approved a gate that excludes who asked for the run")?;
        self.approvals.insert(digest, approval);
        Ok(())
    }

    fn attempt(&mut self, digest: Sha256Digest, attempt: &'a Attempt) -> Result<(), Fault> {
        let plan = self.document(attempt.plan)?.plan();
        let job = plan
            .node(&attempt.node)
            .filter(|node| matches!(node.action, NodeKind::Job(_)));
        self.require(job.is_some(), "the attempt is of no job of the plan")?;
        self.require(self.has_run(attempt.run), "the attempt is of a run that nobody opened")?;
        let mut approvals = Vec::new();
        for approval in &attempt.approvals {
            approvals.push(*self.approvals.get(approval).ok_or_else(|| self.broken())?);
        }
        for gate in gates::before(plan, &attempt.node) {
            let covered = gate_digest(plan, gate).ok().flatten();
            let approved = approvals.iter().any(|approval| {
                let before = attempt.started_at.is_none_or(|started| approval.decided_at <= started);
                approval.gate == gate && Some(approval.gate_digest) == covered && before
            });
            let conditional = plan.node(gate).is_some_and(|node| node.skipped || node.when.is_some());
            let not_needed = conditional && attempt.gates_not_needed.iter().any(|name| name == gate);
            if !approved && !not_needed {
                return Err(self.untrue(format!("{} ran without an approval of {gate}", attempt.node)));
            }
        }
        let twice = self
            .attempts
            .values()
            .any(|known| known.attempt_id == attempt.attempt_id);
        self.require(!twice, "the attempt is there twice")?;
        self.attempts.insert(digest, attempt);
        Ok(())
    }

    fn attestation(&mut self, digest: Sha256Digest, attestation: &'a Attestation) -> Result<(), Fault> {
        let known = self
            .document(attestation.plan)?
            .plan()
            .node(&attestation.node)
            .is_some();
        self.require(known, "the attestation is about no node of the plan")?;
        self.require(!attestation.reason.trim().is_empty(), "the attestation gives no reason")?;
        self.attestations.insert(digest, attestation);
        Ok(())
    }

    fn evidence(&mut self, digest: Sha256Digest, evidence: &'a Evidence) -> Result<(), Fault> {
        match &evidence.source {
            Source::Bytes { sha256 } => {
                let attempt = *self.attempts.get(&evidence.from).ok_or_else(|| self.broken())?;
                let of = evidence.evidence.attempt_id;
                self.require(
                    of.is_none_or(|id| id == attempt.attempt_id),
                    "the evidence is of another attempt",
                )?;
                let shown = Shown {
                    attempt_id: attempt.attempt_id,
                    logs: &attempt.logs,
                    artifacts: &attempt.artifacts,
                    job: source::job_of(self.document(attempt.plan)?.plan(), &attempt.node),
                };
                let read_from = source::digest(&evidence.evidence, shown) == Some(*sha256);
                self.require(read_from, "the evidence was not read from what its attempt has to show")?;
            }
            Source::Person => {
                let attested = self.attestations.contains_key(&evidence.from);
                if !attested {
                    return Err(self.broken());
                }
            }
        }
        self.evidence.insert(digest, evidence);
        Ok(())
    }

    fn update(&mut self, update: &Update) -> Result<(), Fault> {
        let plan = self.document(update.plan)?.plan();
        let Some(NodeKind::ResourceUpdate(planned)) = plan.node(&update.node).map(|node| &node.action) else {
            return Err(self.untrue("the update is no node of the plan"));
        };
        let same = planned.uid == update.uid && planned.resource_id == update.resource_id;
        self.require(same, "the update is of another resource than planned")?;
        let adds = |changes: &contracts::Changes| {
            changes
                .provided_capabilities
                .as_ref()
                .map(|provided| provided.add.clone())
                .unwrap_or_default()
        };
        let unplanned = planned.deferred.is_empty() && adds(&planned.changes) != adds(&update.changes);
        self.require(!unplanned, "the update provides other capabilities than planned")?;
        let mut proofs = Vec::new();
        for link in &update.evidence {
            proofs.push(*self.evidence.get(link).ok_or_else(|| self.broken())?);
        }
        for capability in adds(&update.changes) {
            let proven = self.proven(update, &capability, &proofs)?;
            self.capabilities.push(proven);
        }
        Ok(())
    }

    fn proven(
        &self,
        update: &Update,
        capability: &DottedName,
        proofs: &[&Evidence],
    ) -> Result<ProvenCapability, Fault> {
        let speaks = |proof: &&&Evidence| {
            let about = proof.evidence.resource_id.as_ref();
            proof.evidence.capability == *capability
                && proof.evidence.result == EvidenceResult::Passed
                && about.is_none_or(|id| *id == update.resource_id)
        };
        let passed: Vec<&&Evidence> = proofs.iter().filter(speaks).collect();
        if passed.is_empty() {
            return Err(self.untrue(format!("nothing proves {capability} on {}", update.resource_id)));
        }
        let digest = |proof: &&&Evidence| match proof.source {
            Source::Bytes { sha256 } => Some(sha256),
            Source::Person => None,
        };
        Ok(ProvenCapability {
            resource_id: update.resource_id.clone(),
            capability: capability.clone(),
            version: update.version,
            sources: passed.iter().filter_map(digest).collect(),
        })
    }
}
