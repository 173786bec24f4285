//! Worlds and templates in few words.

use std::collections::BTreeMap;

use contracts::{HealthStatus, LifecycleStatus};
use control_plane_plan::{Plan, PlanNode, SlotExplanation};
use control_plane_planning::{Candidate, Capability, Edge, Place, Planned, PlanningError, Request, Snapshot, plan};
use control_plane_scenario::{Bundle, Pack};
use kernel::ResourceId;
use kernel::id::ResourceUid;
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub fn id(text: &str) -> ResourceId {
    text.parse().unwrap()
}

/// The uid of the resource with that id; the order of uids is not that of ids.
pub fn uid(resource: &str) -> ResourceUid {
    ResourceUid(Uuid::new_v5(&Uuid::NAMESPACE_URL, resource.as_bytes()))
}

/// A running Linux host in environment `demo`.
pub fn host(name: &str) -> Candidate {
    let resource_id = id(&format!("node/{name}"));
    Candidate {
        uid: uid(resource_id.as_str()),
        resource_id,
        resource_type: "compute.node".parse().unwrap(),
        ancestors: vec!["compute".parse().unwrap()],
        environment: Some("demo".to_owned()),
        labels: BTreeMap::new(),
        lifecycle: LifecycleStatus::Running,
        health: HealthStatus::Healthy,
        capabilities: vec![capability("os.linux", "6.1.0-13-amd64")],
        edges: Vec::new(),
        desired_generation: 1,
        connection: json!({"address": "127.0.0.11", "port": 22})
            .as_object()
            .unwrap()
            .clone(),
    }
}

pub fn capability(name: &str, version: &str) -> Capability {
    Capability {
        capability: name.parse().unwrap(),
        implies: Vec::new(),
        attributes: json!({ "version": version }).as_object().unwrap().clone(),
    }
}

pub fn edge(edge_type: &str, target: &str) -> Edge {
    Edge {
        edge_type: edge_type.to_owned(),
        target: id(target),
    }
}

pub trait Words {
    fn label(self, key: &str, value: &str) -> Self;
    fn rack(self, rack: &str) -> Self;
}

impl Words for Candidate {
    fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    fn rack(mut self, rack: &str) -> Self {
        self.edges.push(edge("part_of", &format!("rack/{rack}")));
        self
    }
}

/// A world in which every edge to `rack/…` leads to a rack.
pub fn world(candidates: Vec<Candidate>) -> Snapshot {
    let racks: BTreeMap<ResourceId, Place> = candidates
        .iter()
        .flat_map(|candidate| &candidate.edges)
        .filter(|edge| edge.target.prefix() == "rack")
        .map(|edge| {
            let place = Place {
                resource_type: "topology.rack".parse().unwrap(),
                ancestors: Vec::new(),
                edges: Vec::new(),
            };
            (edge.target.clone(), place)
        })
        .collect();
    Snapshot {
        candidates,
        places: racks,
        left_out: BTreeMap::new(),
    }
}

pub fn pack(template: &str) -> Pack {
    let mut bundle = Bundle::default();
    for (path, text) in [
        ("pack.yaml", "name: p\nversion: 1.0.0\ncontent: content\n"),
        ("content/site.yml", "- hosts: all\n"),
        ("templates/t.yaml", template),
    ] {
        bundle.insert(path.to_owned(), false, text.as_bytes().to_vec()).unwrap();
    }
    Pack::read(&bundle).unwrap_or_else(|faults| {
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("{}\n{template}", told.join("\n"))
    })
}

pub fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub fn planned(template: &str, parameters: &Value, snapshot: &Snapshot) -> Result<Planned, PlanningError> {
    let pack = pack(template);
    let (_, template) = pack.templates.first_key_value().unwrap();
    let request = Request {
        scenario: pack.pin(template),
        template,
        environment: "demo",
        parameters: &object(parameters),
    };
    plan(&request, snapshot)
}

pub fn plan_of(template: &str, parameters: &Value, candidates: Vec<Candidate>) -> Plan {
    let planned =
        planned(template, parameters, &world(candidates)).unwrap_or_else(|error| panic!("{error}: {error:#?}"));
    planned.document.plan().clone()
}

/// The explanation of slot `web`, which cannot be bound.
pub fn unbound(template: &str, snapshot: &Snapshot) -> SlotExplanation {
    match planned(template, &json!({}), snapshot) {
        Err(PlanningError::Unsatisfiable(slots)) => slots.into_iter().find(|slot| slot.slot == "web").unwrap(),
        other => panic!("{other:?}"),
    }
}

/// A template with one slot `web`, given as the body of its requirement, and one job on it.
pub fn with_slot(requirement: &str) -> String {
    let indented = requirement.trim_end().replace('\n', "\n    ");
    format!(
        "name: t
requirements:
  web:
    resource_type: compute.node
    {indented}
nodes:
  - id: a
    kind: job
    job: {{type: ansible, targets: web, parameters: {{playbook: site.yml}}}}
"
    )
}

pub fn bound(plan: &Plan, slot: &str) -> Vec<String> {
    let slot = plan.slots.iter().find(|s| s.slot == slot).unwrap();
    slot.resources.iter().map(|r| r.resource_id.to_string()).collect()
}

pub fn ids(plan: &Plan) -> Vec<&str> {
    plan.nodes.iter().map(|node| node.id.as_str()).collect()
}

/// `a, b[x]` with what is accepted when that is not just success.
pub fn needs(node: &PlanNode) -> String {
    let one = |need: &control_plane_plan::Need| {
        let accept: Vec<String> = need
            .accept
            .iter()
            .map(|a| serde_json::to_value(a).unwrap().as_str().unwrap().to_owned())
            .collect();
        if accept == ["succeeded"] {
            need.node.clone()
        } else {
            format!("{}({})", need.node, accept.join("|"))
        }
    };
    node.needs.iter().map(one).collect::<Vec<_>>().join(", ")
}
