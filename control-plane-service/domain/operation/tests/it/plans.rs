//! Plans for tests, built node by node.

use std::collections::BTreeMap;
use std::sync::Arc;

use contracts::{Changes, ExitCategory, Isolation, JobType, OutputContract, ProvidedCapabilities};
use control_plane_operation::PlanIndex;
use control_plane_plan::{
    Accept, BoundResource, Claim, ClaimMode, Gate, GateClaims, GateExpiry, Item, Job, Lane, LaneItem, Need, NodeKind,
    OnFailure, Plan, PlanDocument, PlanNode, ResourceUpdate, RetryPolicy, ScenarioPin, SlotBinding,
};
use kernel::Sha256Digest;
use kernel::id::ResourceUid;
use uuid::Uuid;

pub const CAPABILITY: &str = "web.http";

pub fn uid(host: u128) -> ResourceUid {
    ResourceUid(Uuid::from_u128(0xbeef_0000 + host))
}

pub fn pin(host: u128) -> Sha256Digest {
    Sha256Digest::of(format!("pin of {host}").as_bytes())
}

pub fn host_id(host: u128) -> kernel::ResourceId {
    format!("node/web-{host}").parse().unwrap()
}

pub fn bound(host: u128) -> BoundResource {
    BoundResource {
        resource_id: host_id(host),
        uid: uid(host),
        resource_type: "compute.node".parse().unwrap(),
        pin: pin(host),
    }
}

pub fn claim(host: u128, mode: ClaimMode) -> Claim {
    Claim {
        uid: uid(host),
        resource_id: host_id(host),
        mode,
    }
}

/// A plan under construction, with hosts `1..=hosts` bound to the slot `web` and claimed.
#[derive(Clone)]
pub struct Plans {
    pub plan: Plan,
}

pub fn plan(hosts: u128) -> Plans {
    let resources: Vec<BoundResource> = (1..=hosts).map(bound).collect();
    Plans {
        plan: Plan {
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
            claims: (1..=hosts).map(|host| claim(host, ClaimMode::Exclusive)).collect(),
            slots: vec![SlotBinding {
                slot: "web".into(),
                resource_type: "compute.node".parse().unwrap(),
                claim: ClaimMode::Exclusive,
                pin_capabilities: Vec::new(),
                resources,
            }],
            nodes: Vec::new(),
            lanes: Vec::new(),
            capability_changes: Vec::new(),
            destructive: Vec::new(),
        },
    }
}

pub fn job() -> Job {
    Job {
        job_type: JobType::Verification,
        runner: "any".into(),
        isolation: Isolation::Sandbox,
        runner_labels: BTreeMap::new(),
        targets: Vec::new(),
        parameters: serde_json::Map::new(),
        deferred: BTreeMap::new(),
        capabilities: Vec::new(),
        artifacts: Vec::new(),
        secrets: Vec::new(),
        output_contract: OutputContract::default(),
        timeout_seconds: 60,
        retry: RetryPolicy {
            name: "retry/none".into(),
            max_attempts: 1,
            backoff_seconds: 10,
            backoff_max_seconds: 60,
            on: vec![],
        },
        allowed_commands_ref: None,
        idempotent: false,
        mutating: true,
        with_content: false,
    }
}

pub fn retrying(attempts: u32) -> RetryPolicy {
    RetryPolicy {
        name: "retry/default".into(),
        max_attempts: attempts,
        backoff_seconds: 10,
        backoff_max_seconds: 60,
        on: vec![
            ExitCategory::InfrastructureError,
            ExitCategory::Unknown,
            ExitCategory::ValidationError,
            ExitCategory::PolicyError,
        ],
    }
}

pub fn gate() -> Gate {
    Gate {
        role: "approver".into(),
        requester_excluded: true,
        expires_after_seconds: None,
        on_expiry: GateExpiry::Deny,
        claims: GateClaims::Hold,
        message: String::new(),
    }
}

pub fn update(host: u128, evidence_from: &[&str]) -> ResourceUpdate {
    ResourceUpdate {
        uid: uid(host),
        resource_id: host_id(host),
        changes: Changes {
            provided_capabilities: Some(ProvidedCapabilities {
                add: vec![CAPABILITY.parse().unwrap()],
                ..ProvidedCapabilities::default()
            }),
            ..Changes::default()
        },
        deferred: BTreeMap::new(),
        evidence_from: evidence_from.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// Reads `a`, `a:failed` and `a:failed|skipped`.
pub fn need(text: &str) -> Need {
    let (node, accept) = text.split_once(':').unwrap_or((text, "succeeded"));
    let accept = accept.split('|').map(|word| match word {
        "succeeded" => Accept::Succeeded,
        "failed" => Accept::Failed,
        "timed_out" => Accept::TimedOut,
        "skipped" => Accept::Skipped,
        "cancelled" => Accept::Cancelled,
        "lost" => Accept::Lost,
        other => panic!("no end is called {other}"),
    });
    let mut accept: Vec<Accept> = accept.collect();
    accept.sort();
    Need {
        node: node.into(),
        accept,
    }
}

pub fn node(id: &str, needs: &[&str], action: NodeKind) -> PlanNode {
    PlanNode {
        id: id.into(),
        template_node: id.split('[').next().unwrap().into(),
        item: None,
        lane: None,
        title: String::new(),
        needs: needs.iter().map(|text| need(text)).collect(),
        when: None,
        skipped: false,
        on_failure: OnFailure::Fail,
        destructive: false,
        action,
    }
}

impl Plans {
    pub fn add(mut self, node: PlanNode) -> Self {
        self.plan.nodes.push(node);
        self
    }

    /// A job without targets or contract.
    pub fn job(self, id: &str, needs: &[&str]) -> Self {
        self.add(node(id, needs, NodeKind::Job(job())))
    }

    pub fn gate(self, id: &str, needs: &[&str]) -> Self {
        self.add(node(id, needs, NodeKind::Gate(gate())))
    }

    /// Changes the node added last.
    pub fn with(mut self, edit: impl FnOnce(&mut PlanNode)) -> Self {
        edit(self.plan.nodes.last_mut().unwrap());
        self
    }

    /// Changes the job added last.
    pub fn job_with(self, edit: impl FnOnce(&mut Job)) -> Self {
        self.with(|node| match &mut node.action {
            NodeKind::Job(job) => edit(job),
            other => panic!("{other:?} is no job"),
        })
    }

    /// Changes the gate added last.
    pub fn gate_with(self, edit: impl FnOnce(&mut Gate)) -> Self {
        self.with(|node| match &mut node.action {
            NodeKind::Gate(gate) => edit(gate),
            other => panic!("{other:?} is no gate"),
        })
    }

    pub fn on_failure(self, on_failure: OnFailure) -> Self {
        self.with(|node| node.on_failure = on_failure)
    }

    /// Items `id[web-1]` … of one job each, on one host each, and their join `id`.
    pub fn fan_out(mut self, id: &str, hosts: u128, needs: &[&str], lane: Option<&str>, each: Option<&str>) -> Self {
        let mut join = node(id, &[], NodeKind::Join);
        for host in 1..=hosts {
            let key = format!("web-{host}");
            let item_id = format!("{id}[{key}]");
            let mut item = node(&item_id, needs, NodeKind::Job(job()));
            if let Some(same) = each {
                item.needs.push(need(&format!("{same}[{key}]")));
            }
            if let NodeKind::Job(job) = &mut item.action {
                job.targets = vec![uid(host)];
            }
            item.item = Some(Item {
                index: u32::try_from(host - 1).unwrap(),
                key,
                uid: Some(uid(host)),
                value: None,
            });
            item.lane = lane.map(str::to_owned);
            join.needs.push(need(&item_id));
            self.plan.nodes.push(item);
        }
        self.plan.nodes.push(join);
        self
    }

    /// Changes every item node of the fan-out `id`.
    pub fn items_with(mut self, id: &str, edit: impl Fn(&mut PlanNode)) -> Self {
        let items = self.plan.nodes.iter_mut();
        items
            .filter(|node| node.template_node == id && node.item.is_some())
            .for_each(edit);
        self
    }

    /// The lane `id` over everything that names it.
    pub fn lane(mut self, id: &str, max_parallel: u32, max_failures: u32) -> Self {
        let mut items: Vec<LaneItem> = Vec::new();
        for node in self.plan.nodes.iter().filter(|node| node.lane.as_deref() == Some(id)) {
            let key = node.item.as_ref().unwrap().key.clone();
            match items.iter_mut().find(|item| item.key == key) {
                Some(item) => item.nodes.push(node.id.clone()),
                None => items.push(LaneItem {
                    key,
                    nodes: vec![node.id.clone()],
                }),
            }
        }
        self.plan.lanes.push(Lane {
            id: id.into(),
            max_parallel,
            max_failures,
            items,
        });
        self
    }

    pub fn parameter(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.plan.parameters.insert(name.into(), value.into());
        self
    }

    pub fn index(&self) -> Arc<PlanIndex> {
        self.revision(1)
    }

    pub fn revision(&self, revision: u32) -> Arc<PlanIndex> {
        let document = PlanDocument::seal(self.plan.clone()).unwrap();
        Arc::new(PlanIndex::new(document, revision).unwrap())
    }
}
