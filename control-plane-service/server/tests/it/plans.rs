//! Plans for tests, built node by node, and a planner that keeps them in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use api_kit::Problem;
use async_trait::async_trait;
use contracts::{Changes, Isolation, JobType, OutputContract, ProvidedCapabilities};
use control_plane_api::PlanRequest;
use control_plane_plan::{
    Accept, Advice, BoundResource, Claim, ClaimMode, Gate, GateClaims, GateExpiry, Job, Need, NodeKind, OnFailure,
    Plan, PlanDocument, PlanNode, ResourceUpdate, RetryPolicy, ScenarioPin, SlotBinding,
};
use control_plane_server::planner::{Planner, ReadyPlan};
use kernel::Sha256Digest;
use kernel::id::{OrganizationId, PlanId, ResourceUid};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::catalog;

pub fn uid(host: u128) -> ResourceUid {
    ResourceUid(Uuid::from_u128(0xbeef_0000 + host))
}

fn host_id(host: u128) -> kernel::ResourceId {
    format!("node/web-{host}").parse().unwrap()
}

/// A plan on these hosts, claimed exclusively, without nodes.
pub fn plan(hosts: &[u128]) -> Plan {
    let mut claims: Vec<Claim> = hosts
        .iter()
        .map(|host| Claim {
            uid: uid(*host),
            resource_id: host_id(*host),
            mode: ClaimMode::Exclusive,
        })
        .collect();
    claims.sort_by_key(|claim| claim.uid);
    let resources = hosts.iter().map(|host| BoundResource {
        resource_id: host_id(*host),
        uid: uid(*host),
        resource_type: "compute.node".parse().unwrap(),
        pin: catalog::pin(*host),
    });
    Plan {
        format: 1,
        scenario: ScenarioPin {
            pack: "web".into(),
            pack_version: "1.0.0".into(),
            pack_digest: Sha256Digest::of(b"pack"),
            content_digest: None,
            template: "rollout".into(),
        },
        environment: "demo".into(),
        parameters: Map::new(),
        slots: vec![SlotBinding {
            slot: "web".into(),
            resource_type: "compute.node".parse().unwrap(),
            claim: ClaimMode::Exclusive,
            pin_capabilities: Vec::new(),
            resources: resources.collect(),
        }],
        claims,
        nodes: Vec::new(),
        lanes: Vec::new(),
        capability_changes: Vec::new(),
        destructive: Vec::new(),
    }
}

pub trait Building {
    fn job(self, id: &str, needs: &[&str]) -> Self;
    fn gate(self, id: &str, needs: &[&str]) -> Self;
    fn expiring_gate(self, id: &str, seconds: u32) -> Self;
    fn update(self, id: &str, needs: &[&str], evidence_from: &str, host: u128) -> Self;
    fn hold_on_failure(self, id: &str) -> Self;
    fn not_idempotent(self, id: &str) -> Self;
    fn parameter(self, name: &str, value: Value) -> Self;
}

fn node(id: &str, needs: &[&str], action: NodeKind) -> PlanNode {
    PlanNode {
        id: id.into(),
        template_node: id.into(),
        item: None,
        lane: None,
        title: String::new(),
        needs: needs
            .iter()
            .map(|need| Need {
                node: (*need).into(),
                accept: vec![Accept::Succeeded],
            })
            .collect(),
        when: None,
        skipped: false,
        on_failure: OnFailure::Fail,
        destructive: false,
        action,
    }
}

fn gate_action(expires_after_seconds: Option<u32>) -> NodeKind {
    NodeKind::Gate(Gate {
        role: "approver".into(),
        requester_excluded: true,
        expires_after_seconds,
        on_expiry: GateExpiry::Deny,
        claims: GateClaims::Hold,
        message: "go?".into(),
    })
}

impl Building for Plan {
    fn job(mut self, id: &str, needs: &[&str]) -> Self {
        let targets = self.slots[0].resources.iter().map(|resource| resource.uid).collect();
        let job = Job {
            job_type: JobType::Verification,
            runner: "any".into(),
            isolation: Isolation::Process,
            runner_labels: BTreeMap::new(),
            targets,
            parameters: self.parameters.clone(),
            deferred: BTreeMap::new(),
            capabilities: Vec::new(),
            artifacts: Vec::new(),
            secrets: Vec::new(),
            output_contract: OutputContract {
                evidence: vec!["checked".into()],
                ..OutputContract::default()
            },
            timeout_seconds: 60,
            retry: RetryPolicy {
                name: "retry/none".into(),
                max_attempts: 1,
                backoff_seconds: 1,
                backoff_max_seconds: 1,
                on: Vec::new(),
            },
            allowed_commands_ref: None,
            idempotent: true,
            mutating: true,
            with_content: false,
        };
        self.nodes.push(node(id, needs, NodeKind::Job(job)));
        self
    }

    fn gate(mut self, id: &str, needs: &[&str]) -> Self {
        self.nodes.push(node(id, needs, gate_action(None)));
        self
    }

    fn expiring_gate(mut self, id: &str, seconds: u32) -> Self {
        self.nodes.push(node(id, &[], gate_action(Some(seconds))));
        self
    }

    fn update(mut self, id: &str, needs: &[&str], evidence_from: &str, host: u128) -> Self {
        let update = ResourceUpdate {
            uid: uid(host),
            resource_id: host_id(host),
            changes: Changes {
                provided_capabilities: Some(ProvidedCapabilities {
                    add: vec!["web.http".parse().unwrap()],
                    ..ProvidedCapabilities::default()
                }),
                ..Changes::default()
            },
            deferred: BTreeMap::new(),
            evidence_from: vec![evidence_from.into()],
        };
        self.nodes.push(node(id, needs, NodeKind::ResourceUpdate(update)));
        self
    }

    fn hold_on_failure(mut self, id: &str) -> Self {
        let node = self.nodes.iter_mut().find(|node| node.id == id).unwrap();
        node.on_failure = OnFailure::Hold;
        self
    }

    fn not_idempotent(mut self, id: &str) -> Self {
        let node = self.nodes.iter_mut().find(|node| node.id == id).unwrap();
        if let NodeKind::Job(job) = &mut node.action {
            job.idempotent = false;
        }
        self
    }

    fn parameter(mut self, name: &str, value: Value) -> Self {
        self.parameters.insert(name.into(), value);
        self
    }
}

/// Keeps plans in memory; replanning sets parameters of plan and jobs.
#[derive(Default)]
pub struct MemoryPlanner(Mutex<HashMap<PlanId, PlanDocument>>);

impl MemoryPlanner {
    pub fn keep(&self, plan: Plan) -> ReadyPlan {
        let document = PlanDocument::seal(plan).unwrap();
        let plan_id = PlanId::new_v7();
        self.0.lock().unwrap().insert(plan_id, document.clone());
        ReadyPlan { plan_id, document }
    }
}

#[async_trait]
impl Planner for MemoryPlanner {
    async fn stored(&self, _organization: OrganizationId, plan_id: PlanId) -> Result<ReadyPlan, Problem> {
        let plans = self.0.lock().unwrap();
        let document = plans.get(&plan_id).cloned();
        let document = document.ok_or_else(|| Problem::not_found(format_args!("plan {plan_id}")))?;
        Ok(ReadyPlan { plan_id, document })
    }

    async fn plan(
        &self,
        _organization: OrganizationId,
        _subject: &str,
        request: &PlanRequest,
    ) -> Result<ReadyPlan, Problem> {
        let message = request.parameters.get("message").cloned().unwrap_or(json!("hello"));
        Ok(self.keep(plan(&[1]).parameter("message", message).job("check", &[])))
    }

    async fn replan(
        &self,
        _organization: OrganizationId,
        base: &PlanDocument,
        set: &Map<String, Value>,
    ) -> Result<ReadyPlan, Problem> {
        let mut plan = base.plan().clone();
        plan.parameters.extend(set.clone());
        for node in &mut plan.nodes {
            if let NodeKind::Job(job) = &mut node.action {
                job.parameters = plan.parameters.clone();
            }
        }
        Ok(self.keep(plan))
    }

    async fn advice(&self, _organization: OrganizationId, _plan_id: PlanId) -> Result<Option<Advice>, Problem> {
        Ok(None)
    }
}
