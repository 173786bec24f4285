//! The rows of one operation that went well: approval, deployment, verification, update.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use contracts::{
    ArtifactRef, ArtifactStorage, Changes, EvidenceRef, EvidenceResult, EvidenceType, ExecutionResult, ExecutionStatus,
    ExitCategory, ExitSummary, Isolation, JobType, LogRef, OutputContract, ProducedBy, ProvidedCapabilities,
    Sensitivity,
};
use control_plane_operation::{
    AttemptRow, AttemptState, GateId, GateRow, GateState, OperationRow, OperationStatus, Progress, Rows, RunEnd,
    RunRow, UpdateRow, UpdateState,
};
use control_plane_plan::{
    Accept, BoundResource, Claim, ClaimMode, Gate, GateClaims, GateExpiry, Job, Need, NodeKind, OnFailure, Plan,
    PlanDocument, PlanNode, ResourceUpdate, RetryPolicy, ScenarioPin, SlotBinding, gate_digest,
};
use control_plane_proof::{PublicKey, Signer};
use ed25519_dalek::{Signer as _, SigningKey};
use kernel::Sha256Digest;
use kernel::id::{AttemptId, CommandId, OperationId, OrganizationId, ResourceUid};
use uuid::Uuid;

pub struct Key(pub SigningKey);

impl Key {
    pub fn new(seed: u8) -> Self {
        Self(SigningKey::from_bytes(&[seed; 32]))
    }
}

impl Signer for Key {
    fn public_key(&self) -> PublicKey {
        self.0.verifying_key().to_bytes()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

pub fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

pub fn operation_id() -> OperationId {
    OperationId(Uuid::from_u128(1))
}

pub fn attempt_id(number: u128) -> AttemptId {
    AttemptId(Uuid::from_u128(0xa0 + number))
}

fn uid() -> ResourceUid {
    ResourceUid(Uuid::from_u128(2))
}

fn needs(names: &[&str]) -> Vec<Need> {
    let need = |name: &&str| Need {
        node: (*name).to_owned(),
        accept: vec![Accept::Succeeded],
    };
    names.iter().map(need).collect()
}

fn node(id: &str, after: &[&str], action: NodeKind) -> PlanNode {
    PlanNode {
        id: id.into(),
        template_node: id.into(),
        item: None,
        lane: None,
        title: String::new(),
        needs: needs(after),
        when: None,
        skipped: false,
        on_failure: OnFailure::Fail,
        destructive: false,
        action,
    }
}

fn job(evidence: &[&str]) -> Job {
    Job {
        job_type: JobType::Verification,
        runner: "any".into(),
        isolation: Isolation::Sandbox,
        runner_labels: BTreeMap::new(),
        targets: vec![uid()],
        parameters: serde_json::from_value(serde_json::json!({"checks": [{"equal": [1, 1]}]})).unwrap(),
        deferred: BTreeMap::new(),
        capabilities: vec![],
        artifacts: vec![],
        secrets: vec![],
        output_contract: OutputContract {
            evidence: evidence.iter().map(|name| (*name).to_owned()).collect(),
            ..OutputContract::default()
        },
        timeout_seconds: 60,
        retry: RetryPolicy {
            name: "retry/none".into(),
            max_attempts: 1,
            backoff_seconds: 1,
            backoff_max_seconds: 1,
            on: vec![],
        },
        allowed_commands_ref: None,
        idempotent: false,
        mutating: true,
        with_content: true,
    }
}

pub fn changes() -> Changes {
    Changes {
        provided_capabilities: Some(ProvidedCapabilities {
            add: vec!["web.http".parse().unwrap()],
            ..ProvidedCapabilities::default()
        }),
        ..Changes::default()
    }
}

pub fn plan() -> Plan {
    let resource_id: kernel::ResourceId = "node/web-1".parse().unwrap();
    Plan {
        format: 1,
        scenario: ScenarioPin {
            pack: "web".into(),
            pack_version: "1.0.0".into(),
            pack_digest: Sha256Digest::of(b"pack"),
            content_digest: Some(Sha256Digest::of(b"content")),
            template: "rollout".into(),
        },
        environment: "demo".into(),
        parameters: serde_json::Map::new(),
        slots: vec![SlotBinding {
            slot: "web".into(),
            resource_type: "compute.node".parse().unwrap(),
            claim: ClaimMode::Exclusive,
            pin_capabilities: vec![],
            resources: vec![BoundResource {
                resource_id: resource_id.clone(),
                uid: uid(),
                resource_type: "compute.node".parse().unwrap(),
                pin: Sha256Digest::of(b"pin"),
            }],
        }],
        nodes: vec![
            node(
                "approval",
                &[],
                NodeKind::Gate(Gate {
                    role: "approver".into(),
                    requester_excluded: true,
                    expires_after_seconds: None,
                    on_expiry: GateExpiry::Deny,
                    claims: GateClaims::Hold,
                    message: String::new(),
                }),
            ),
            node("deploy", &["approval"], NodeKind::Job(job(&[]))),
            node("verify", &["deploy"], NodeKind::Job(job(&["http"]))),
            node(
                "update",
                &["verify"],
                NodeKind::ResourceUpdate(ResourceUpdate {
                    uid: uid(),
                    resource_id: resource_id.clone(),
                    changes: changes(),
                    deferred: BTreeMap::new(),
                    evidence_from: vec!["verify".into()],
                }),
            ),
        ],
        lanes: vec![],
        claims: vec![Claim {
            uid: uid(),
            resource_id,
            mode: ClaimMode::Exclusive,
        }],
        capability_changes: vec![],
        destructive: vec![],
    }
}

pub fn plans() -> Vec<(u32, PlanDocument)> {
    vec![(1, PlanDocument::seal(plan()).unwrap())]
}

pub fn evidence() -> EvidenceRef {
    EvidenceRef {
        id: Uuid::from_u128(0xe1),
        evidence_type: EvidenceType::ApiCheck,
        capability: "web.http".parse().unwrap(),
        result: EvidenceResult::Passed,
        source_ref: "s3://artifacts/response".into(),
        observed_at: at(40),
        name: Some("http".into()),
        resource_id: Some("node/web-1".parse().unwrap()),
        attempt_id: Some(attempt_id(2)),
        sha256: Some(Sha256Digest::of(b"200 OK")),
    }
}

fn attempt(number: u128, node: &str, evidence: Vec<EvidenceRef>) -> AttemptRow {
    let started = at(10 * i64::try_from(number).unwrap() + 10);
    AttemptRow {
        id: attempt_id(number),
        run: 1,
        node: node.into(),
        number: 1,
        plan_revision: 1,
        state: AttemptState::Ended,
        submitted_at: started,
        started_at: Some(started),
        runner: None,
        ended_at: Some(started),
        cancel_requested: false,
        result: Some(ExecutionResult {
            operation_id: operation_id(),
            plan_node_id: node.into(),
            attempt_id: attempt_id(number),
            status: ExecutionStatus::Succeeded,
            started_at: Some(started),
            finished_at: started,
            exit_summary: ExitSummary {
                code: 0,
                category: ExitCategory::Success,
                message: "done".into(),
            },
            artifacts: vec![ArtifactRef {
                id: Uuid::from_u128(0xf1),
                artifact_type: "install_report".into(),
                storage: ArtifactStorage::S3,
                uri: "s3://artifacts/response".into(),
                sensitivity: Sensitivity::Internal,
                produced_by: ProducedBy {
                    operation_id: operation_id(),
                    plan_node_id: node.into(),
                },
                name: Some("response".into()),
                sha256: Some(Sha256Digest::of(b"200 OK")),
                size_bytes: Some(6),
                media_type: None,
            }],
            evidence,
            raw_logs: vec![LogRef {
                id: Uuid::from_u128(0xf2),
                uri: "s3://logs/output".into(),
                sha256: Sha256Digest::of(b"output"),
                size_bytes: 6,
                lines: 1,
            }],
            job_started: None,
            reason: None,
            outputs: None,
        }),
        late: false,
    }
}

pub fn rows() -> Rows {
    Rows {
        operation: OperationRow {
            id: operation_id(),
            organization_id: OrganizationId(Uuid::from_u128(3)),
            requester: "rita".into(),
            created_at: at(0),
            status: OperationStatus::Succeeded,
            run: 1,
            plan_revision: 1,
            revision: 9,
            last_event: 30,
            last_event_at: at(60),
            progress: Progress::default(),
        },
        runs: vec![RunRow {
            number: 1,
            plan_revision: 1,
            opened_at: at(0),
            opened_by: "rita".into(),
            ended_at: Some(at(60)),
            end: Some(RunEnd::Succeeded),
        }],
        node_runs: vec![],
        attempts: vec![attempt(1, "deploy", vec![]), attempt(2, "verify", vec![evidence()])],
        gates: vec![GateRow {
            id: GateId(Uuid::from_u128(0x9a)),
            run: 1,
            node: "approval".into(),
            plan_revision: 1,
            digest: gate_digest(&plan(), "approval").unwrap().unwrap(),
            state: GateState::Passed,
            role: "approver".into(),
            excluded: vec!["rita".into()],
            opened_at: at(1),
            expires_at: None,
            decided_at: Some(at(5)),
            decided_by: Some("anna".into()),
            comment: Some("looks good".into()),
        }],
        updates: vec![UpdateRow {
            command_id: CommandId(Uuid::from_u128(0xc1)),
            run: 1,
            node: "update".into(),
            uid: uid(),
            resource_id: "node/web-1".parse().unwrap(),
            expected_version: 7,
            changes: changes(),
            evidence: vec![evidence()],
            state: UpdateState::Applied,
            rebases: 0,
            sent_at: at(50),
            settled_at: Some(at(51)),
            version: Some(8),
        }],
        bindings: vec![],
        commands: vec![],
    }
}
