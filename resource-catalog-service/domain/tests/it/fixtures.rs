use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use contracts::{EvidenceRef, EvidenceResult, EvidenceType};
use kernel::id::ResourceUid;
use kernel::{DottedName, ResourceId};
use resource_catalog_domain::apply::Identity;
use resource_catalog_domain::{
    Capabilities, CapabilityDefinition, Desired, Edge, EdgeFacts, Fault, Resource, TypeDefinition, Types, apply,
    builtin, create,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub fn name(text: &str) -> DottedName {
    text.parse().unwrap()
}

pub fn id(text: &str) -> ResourceId {
    text.parse().unwrap()
}

pub fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

pub fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub fn uid() -> ResourceUid {
    ResourceUid(Uuid::from_u128(7))
}

/// The taxonomy with one type whose states have a schema.
pub fn types() -> Types {
    let mut web = TypeDefinition::derived(name("compute.node.web"), name("compute.node"));
    web.desired_schema = Some(json!({"properties": {"port": {"type": "integer", "maximum": 65535}}}));
    web.observed_schema = Some(json!({"properties": {"load": {"type": "number", "minimum": 0}}}));
    Types::over(builtin::types(), vec![web], false).unwrap()
}

pub fn capabilities() -> Capabilities {
    let define = |own: &str, parent: Option<&str>, schema: Option<Value>| CapabilityDefinition {
        name: name(own),
        parent: parent.map(name),
        description: String::new(),
        attribute_schema: schema,
    };
    Capabilities::new(vec![
        define("os.linux.debian", Some("os.linux"), None),
        define(
            "os.linux",
            None,
            Some(json!({"properties": {"version": {"type": "string"}}})),
        ),
        define(
            "web.http",
            None,
            Some(json!({"properties": {"port": {"type": "integer"}}, "required": ["port"]})),
        ),
        define("plain", None, None),
    ])
    .unwrap()
}

pub fn desired() -> Desired {
    Desired {
        resource_type: name("compute.node.web"),
        environment: Some("demo".into()),
        labels: BTreeMap::from([("rack".into(), "a".into())]),
        annotations: BTreeMap::new(),
        lifecycle: None,
        desired: map(json!({"port": 8080})),
        connection: map(json!({"address": "127.0.0.2"})),
        edges: None,
    }
}

pub fn create_one(asked: Desired) -> Result<Resource, Vec<Fault>> {
    let identity = Identity {
        organization: Uuid::from_u128(1).into(),
        id: id("node/web-1"),
        uid: uid(),
        last_version: 0,
    };
    create(identity, asked, &BTreeMap::new(), &types(), at(0))
}

pub fn node() -> Resource {
    create_one(desired()).unwrap()
}

pub fn apply_to(current: &Resource, asked: Desired) -> Result<Option<Resource>, Vec<Fault>> {
    apply(current, asked, &BTreeMap::new(), &types(), at(60))
}

pub fn evidence(capability: &str, result: EvidenceResult) -> EvidenceRef {
    EvidenceRef {
        id: Uuid::from_u128(9),
        evidence_type: EvidenceType::ApiCheck,
        capability: name(capability),
        result,
        source_ref: "log://attempt/1".into(),
        observed_at: at(1),
        name: None,
        resource_id: None,
        attempt_id: None,
        sha256: None,
    }
}

pub fn facts(edge: &Edge, target_type: Option<&str>) -> BTreeMap<Edge, EdgeFacts> {
    let known = EdgeFacts {
        target_type: target_type.map(name),
        sources: 0,
        reaches_source: false,
    };
    BTreeMap::from([(edge.clone(), known)])
}

pub fn words(faults: &[Fault]) -> BTreeSet<(String, &'static str)> {
    faults.iter().map(|f| (f.pointer.clone(), f.code.as_str())).collect()
}

/// Compares faults by place and code.
pub fn assert_faults(faults: &[Fault], expected: &[(&str, &'static str)]) {
    let expected: BTreeSet<(String, &'static str)> = expected.iter().map(|(p, c)| ((*p).to_owned(), *c)).collect();
    assert_eq!(words(faults), expected, "{faults:#?}");
}
