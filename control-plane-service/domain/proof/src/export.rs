//! Making a proof from an operation's rows. What the rows cannot prove is refused here already: a proof
//! that would not verify is not handed out.

use std::collections::BTreeMap;

use contracts::{EvidenceRef, ExecutionResult};
use control_plane_operation::{AttemptRow, GateRow, GateState, NodeReason, NodeState, Rows, UpdateRow, UpdateState};
use control_plane_plan::PlanDocument;
use kernel::{CanonicalError, Sha256Digest, canonical_bytes, canonical_digest};

use crate::record::{
    Approval, Attempt, Attestation, Evidence, FORMAT, Pack, Proof, ProvenPlan, Record, Root, Run, Signature, Source,
    Update,
};
use crate::sign::{Signer, message};
use crate::source::{self, Shown};
use crate::{Fault, gates, verify};

/// Why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("a record has no canonical form")]
    Canonical(#[from] CanonicalError),
    #[error("plan revision {0} is missing")]
    PlanMissing(u32),
    #[error("run {0} is missing")]
    RunMissing(u32),
    #[error("evidence {0} comes from no attempt and nobody attested it")]
    EvidenceWithoutSource(String),
    #[error("what the operation did cannot be proven")]
    Unprovable(#[source] Fault),
}

/// The proof document of an operation, signed. `rows` holds all of its rows, ended attempts and answered
/// updates included, and node runs of every run; `plans` all plan revisions.
///
/// # Errors
/// When the rows do not make a whole chain.
pub fn export(rows: &Rows, plans: &[(u32, PlanDocument)], signer: &dyn Signer) -> Result<Vec<u8>, ExportError> {
    let mut chain = Chain {
        rows,
        plans,
        records: Vec::new(),
        digests: Vec::new(),
        plan_records: BTreeMap::new(),
        run_records: BTreeMap::new(),
        attempt_records: BTreeMap::new(),
        evidence_records: BTreeMap::new(),
        approvals: Vec::new(),
    };
    chain.plans()?;
    chain.runs()?;
    chain.approvals()?;
    chain.attempts()?;
    chain.updates()?;
    let bytes = chain.seal(signer)?;
    verify(&bytes, &signer.public_key()).map_err(ExportError::Unprovable)?;
    Ok(bytes)
}

struct Chain<'a> {
    rows: &'a Rows,
    plans: &'a [(u32, PlanDocument)],
    records: Vec<Record>,
    digests: Vec<Sha256Digest>,
    plan_records: BTreeMap<u32, Sha256Digest>,
    run_records: BTreeMap<u32, Sha256Digest>,
    attempt_records: BTreeMap<kernel::id::AttemptId, Sha256Digest>,
    evidence_records: BTreeMap<(Sha256Digest, String), Sha256Digest>,
    /// Record, gate and what it was bound to.
    approvals: Vec<(Sha256Digest, String, Sha256Digest)>,
}

impl Chain<'_> {
    fn add(&mut self, record: Record) -> Result<Sha256Digest, ExportError> {
        let digest = canonical_digest(&record)?;
        if !self.digests.contains(&digest) {
            self.records.push(record);
            self.digests.push(digest);
        }
        Ok(digest)
    }

    fn plans(&mut self) -> Result<(), ExportError> {
        for (revision, document) in self.plans {
            let scenario = &document.plan().scenario;
            let pack = self.add(Record::Pack(Pack {
                name: scenario.pack.clone(),
                version: scenario.pack_version.clone(),
                digest: scenario.pack_digest,
                content_digest: scenario.content_digest,
            }))?;
            let plan = self.add(Record::Plan(ProvenPlan {
                revision: *revision,
                pack,
                digest: document.digest(),
                document: String::from_utf8_lossy(document.bytes()).into_owned(),
            }))?;
            self.plan_records.insert(*revision, plan);
        }
        Ok(())
    }

    fn runs(&mut self) -> Result<(), ExportError> {
        let rows = self.rows;
        for run in &rows.runs {
            let record = self.add(Record::Run(Run {
                number: run.number,
                opened_by: run.opened_by.clone(),
                opened_at: run.opened_at,
            }))?;
            self.run_records.insert(run.number, record);
        }
        Ok(())
    }

    fn plan(&self, revision: u32) -> Result<(Sha256Digest, &PlanDocument), ExportError> {
        let document = self.plans.iter().find(|(number, _)| *number == revision);
        match (self.plan_records.get(&revision), document) {
            (Some(record), Some((_, document))) => Ok((*record, document)),
            _ => Err(ExportError::PlanMissing(revision)),
        }
    }

    fn approvals(&mut self) -> Result<(), ExportError> {
        let rows = self.rows;
        let passed = |gate: &&GateRow| matches!(gate.state, GateState::Passed | GateState::Void);
        for gate in rows.gates.iter().filter(passed) {
            let (Some(decided_by), Some(decided_at)) = (gate.decided_by.clone(), gate.decided_at) else {
                continue;
            };
            let (plan, _) = self.plan(gate.plan_revision)?;
            let run = self.run_records.get(&gate.run).copied();
            let record = self.add(Record::Approval(Approval {
                plan,
                run: run.ok_or(ExportError::RunMissing(gate.run))?,
                gate: gate.node.clone(),
                gate_digest: gate.digest,
                decided_by,
                decided_at,
                comment: gate.comment.clone(),
            }))?;
            self.approvals.push((record, gate.node.clone(), gate.digest));
        }
        Ok(())
    }

    fn attempts(&mut self) -> Result<(), ExportError> {
        let rows = self.rows;
        for row in &rows.attempts {
            if let Some(result) = &row.result {
                let record = self.attempt(row, result)?;
                let digest = self.add(Record::Attempt(record))?;
                self.attempt_records.insert(row.id, digest);
            }
        }
        Ok(())
    }

    fn attempt(&self, row: &AttemptRow, result: &ExecutionResult) -> Result<Attempt, ExportError> {
        let (plan, document) = self.plan(row.plan_revision)?;
        let (mut approvals, mut gates_not_needed) = (Vec::new(), Vec::new());
        for gate in gates::before(document.plan(), &row.node) {
            let bound_to = control_plane_plan::gate_digest(document.plan(), gate)?;
            let approval = self
                .approvals
                .iter()
                .find(|(_, name, digest)| name == gate && Some(*digest) == bound_to);
            match approval {
                Some((record, ..)) => approvals.push(*record),
                None if self.ruled_out(gate) => gates_not_needed.push(gate.to_owned()),
                // Left out, so that checking the finished document finds and names it.
                None => {}
            }
        }
        Ok(Attempt {
            attempt_id: row.id,
            run: row.run,
            node: row.node.clone(),
            plan,
            approvals,
            gates_not_needed,
            status: result.status,
            started_at: result.started_at,
            finished_at: result.finished_at,
            exit: result.exit_summary.clone(),
            logs: result.raw_logs.clone(),
            artifacts: result.artifacts.clone(),
        })
    }

    fn ruled_out(&self, gate: &str) -> bool {
        self.rows
            .node_runs
            .iter()
            .any(|row| row.node == gate && row.state == NodeState::Skipped && row.reason == Some(NodeReason::Condition))
    }

    fn updates(&mut self) -> Result<(), ExportError> {
        let rows = self.rows;
        for row in rows.updates.iter().filter(|row| row.state == UpdateState::Applied) {
            let mut evidence = Vec::new();
            for one in &row.evidence {
                evidence.push(self.evidence(one)?);
            }
            let record = self.update(row, evidence)?;
            self.add(Record::Update(record))?;
        }
        Ok(())
    }

    fn update(&self, row: &UpdateRow, evidence: Vec<Sha256Digest>) -> Result<Update, ExportError> {
        let run = self.rows.runs.iter().find(|run| run.number == row.run);
        let revision = run.map_or(self.rows.operation.plan_revision, |run| run.plan_revision);
        Ok(Update {
            command_id: row.command_id,
            plan: self.plan(revision)?.0,
            run: row.run,
            node: row.node.clone(),
            resource_id: row.resource_id.clone(),
            uid: row.uid,
            changes: row.changes.clone(),
            version: row.version.unwrap_or_default(),
            evidence,
        })
    }

    fn evidence(&mut self, evidence: &EvidenceRef) -> Result<Sha256Digest, ExportError> {
        let (from, source) = self.source(evidence)?;
        let key = (from, evidence.id.to_string());
        if let Some(known) = self.evidence_records.get(&key) {
            return Ok(*known);
        }
        let digest = self.add(Record::Evidence(Evidence {
            from,
            source,
            evidence: evidence.clone(),
        }))?;
        self.evidence_records.insert(key, digest);
        Ok(digest)
    }

    /// The attempt that yielded the evidence, or the person who attested it.
    fn source(&mut self, evidence: &EvidenceRef) -> Result<(Sha256Digest, Source), ExportError> {
        let yielded = |row: &&AttemptRow| {
            row.result
                .as_ref()
                .is_some_and(|result| result.evidence.contains(evidence))
        };
        if let Some(row) = self.rows.attempts.iter().find(yielded) {
            let sha256 = self.shown(row, evidence);
            let from = self.attempt_records.get(&row.id).copied();
            if let (Some(from), Some(sha256)) = (from, sha256) {
                return Ok((from, Source::Bytes { sha256 }));
            }
        }
        let attestation = self.attestation(evidence)?;
        Ok((self.add(Record::Attestation(attestation))?, Source::Person))
    }

    fn shown(&self, row: &AttemptRow, evidence: &EvidenceRef) -> Option<Sha256Digest> {
        let result = row.result.as_ref()?;
        let (_, document) = self.plan(row.plan_revision).ok()?;
        let shown = Shown {
            attempt_id: row.id,
            logs: &result.raw_logs,
            artifacts: &result.artifacts,
            job: source::job_of(document.plan(), &row.node),
        };
        source::digest(evidence, shown)
    }

    fn attestation(&self, evidence: &EvidenceRef) -> Result<Attestation, ExportError> {
        let unknown = || ExportError::EvidenceWithoutSource(evidence.id.to_string());
        let attested = self.rows.node_runs.iter().find(|row| {
            row.state == NodeState::Succeeded
                && row.reason == Some(NodeReason::Operator)
                && row.evidence.contains(evidence)
        });
        let row = attested.ok_or_else(unknown)?;
        let at = row.ended_at.ok_or_else(unknown)?;
        let command = self
            .rows
            .commands
            .iter()
            .find(|command| command.kind == "resolve" && command.at == at && command.reason == row.message);
        Ok(Attestation {
            plan: self.plan(row.plan_revision)?.0,
            run: row.run,
            node: row.node.clone(),
            by: command.ok_or_else(unknown)?.actor.clone(),
            at,
            reason: row.message.clone().unwrap_or_default(),
        })
    }

    fn seal(self, signer: &dyn Signer) -> Result<Vec<u8>, ExportError> {
        let operation = &self.rows.operation;
        let root = Root {
            operation_id: operation.id,
            organization_id: operation.organization_id,
            requester: operation.requester.clone(),
            records: self.digests,
        };
        let value = signer.sign(&message(&canonical_bytes(&root)?));
        let proof = Proof {
            format: FORMAT,
            records: self.records,
            root,
            signature: Signature {
                public_key: hex::encode(signer.public_key()),
                value: hex::encode(value),
            },
        };
        Ok(canonical_bytes(&proof)?)
    }
}
