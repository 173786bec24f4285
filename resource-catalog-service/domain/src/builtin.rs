//! The taxonomy that ships: places, machines, networks, clusters and the usual services on them.
//!
//! Roots are generous, so that an organization's derived types can narrow them. Topology (region, site, rack, node)
//! is `part_of` edges, each with at most one target and no circle.

use std::sync::LazyLock;

use kernel::DottedName;
use serde_json::{Value, json};

use crate::edge::{EdgeRule, EdgeType, OnDelete};
use crate::resource_type::TypeDefinition;
use crate::types::Types;

static BUILT_IN: LazyLock<Types> = LazyLock::new(|| {
    Types::over(&Types::default(), definitions(), true).expect("the taxonomy is fixed, and a test resolves it")
});

/// The built-in types.
#[must_use]
pub fn types() -> &'static Types {
    &BUILT_IN
}

fn name(text: &str) -> DottedName {
    text.parse()
        .expect("every name of the taxonomy is a literal, and a test parses it")
}

fn many(edge_type: EdgeType, targets: &[&str]) -> EdgeRule {
    EdgeRule {
        edge_type,
        targets: targets.iter().map(|t| name(t)).collect(),
        max_targets: None,
        max_sources: None,
        cycles_allowed: false,
        on_delete: OnDelete::Restrict,
        carries_health: false,
    }
}

fn one(edge_type: EdgeType, targets: &[&str]) -> EdgeRule {
    EdgeRule {
        max_targets: Some(1),
        ..many(edge_type, targets)
    }
}

fn healthy(rule: EdgeRule) -> EdgeRule {
    EdgeRule {
        carries_health: true,
        ..rule
    }
}

fn peers(targets: &[&str]) -> EdgeRule {
    EdgeRule {
        cycles_allowed: true,
        on_delete: OnDelete::Detach,
        ..many(EdgeType::ConnectsTo, targets)
    }
}

fn root(type_name: &str, prefix: &str, description: &str, edges: Vec<EdgeRule>) -> TypeDefinition {
    TypeDefinition {
        name: name(type_name),
        parent: None,
        description: description.into(),
        id_prefix: Some(prefix.into()),
        desired_schema: None,
        observed_schema: None,
        transitions: None,
        edges: Some(edges),
    }
}

fn schemas(mut definition: TypeDefinition, desired: Value) -> TypeDefinition {
    definition.desired_schema = Some(desired);
    definition
}

const RUNS_ON: [&str; 3] = ["compute.node", "compute.cluster", "kubernetes.namespace"];
const NEEDS: [&str; 7] = [
    "software.service",
    "data.database",
    "messaging.broker",
    "security.secrets_engine",
    "storage.bucket",
    "compute.cluster",
    "network.network",
];

fn workload(type_name: &str, prefix: &str, description: &str) -> TypeDefinition {
    use EdgeType::{BacksUp, DependsOn, HostedOn, MemberOf, PartOf};
    let peers_of = [type_name];
    root(
        type_name,
        prefix,
        description,
        vec![
            healthy(many(HostedOn, &RUNS_ON)),
            healthy(many(DependsOn, &NEEDS)),
            many(MemberOf, &["compute.cluster", "software.service"]),
            one(PartOf, &["software.service"]),
            many(BacksUp, &peers_of),
            peers(&["network.network", "software.service"]),
        ],
    )
}

fn definitions() -> Vec<TypeDefinition> {
    use EdgeType::{BacksUp, DependsOn, HostedOn, MemberOf, PartOf};
    let mut namespace = root(
        "kubernetes.namespace",
        "namespace",
        "A name space of a Kubernetes cluster",
        vec![healthy(one(PartOf, &["kubernetes.cluster"]))],
    );
    namespace.desired_schema = Some(
        json!({"type": "object", "properties": {"quota": {"type": "object"}, "labels": {"type": "object", "additionalProperties": {"type": "string"}}}}),
    );
    let mut kubernetes = TypeDefinition::derived(name("kubernetes.cluster"), name("compute.cluster"));
    kubernetes.description = "A Kubernetes cluster".into();
    kubernetes.desired_schema =
        Some(json!({"type": "object", "properties": {"kubernetes_version": {"type": "string"}}}));
    vec![
        root("topology.region", "region", "A region: the widest place", vec![]),
        root(
            "topology.site",
            "site",
            "A site: a building or an availability zone",
            vec![one(PartOf, &["topology.region"])],
        ),
        root(
            "topology.rack",
            "rack",
            "A rack, or another domain that fails as one",
            vec![one(PartOf, &["topology.site"])],
        ),
        schemas(
            root(
                "compute.node",
                "node",
                "A machine that runs an operating system, physical or virtual",
                vec![
                    one(PartOf, &["topology.rack", "topology.site"]),
                    healthy(one(HostedOn, &["compute.node", "compute.cluster", "topology.rack"])),
                    many(MemberOf, &["compute.cluster"]),
                    healthy(many(DependsOn, &NEEDS)),
                    many(BacksUp, &["compute.node"]),
                    peers(&["network.network", "compute.node"]),
                ],
            ),
            json!({"type": "object", "properties": {"os": {"type": ["string", "object"]}, "packages": {"type": "array", "items": {"type": ["string", "object"]}}}}),
        ),
        root(
            "network.network",
            "network",
            "A network, subnet or segment",
            vec![
                one(PartOf, &["network.network", "topology.site", "topology.region"]),
                peers(&["network.network"]),
            ],
        ),
        root(
            "compute.cluster",
            "cluster",
            "Machines that work as one",
            vec![
                one(PartOf, &["topology.site", "topology.region"]),
                healthy(many(HostedOn, &["compute.node", "compute.cluster"])),
                healthy(many(DependsOn, &NEEDS)),
                many(BacksUp, &["compute.cluster"]),
                peers(&["network.network", "compute.cluster"]),
            ],
        ),
        kubernetes,
        namespace,
        workload("data.database", "database", "A database, or a cluster of one"),
        workload("messaging.broker", "broker", "A message broker"),
        workload("security.secrets_engine", "secrets-engine", "A store of secrets"),
        workload("storage.bucket", "bucket", "A bucket of objects"),
        workload("software.service", "service", "A service that others use"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_taxonomy_resolves_and_places_nest() {
        let types = types();
        assert!(types.iter().count() >= 13);
        for (child, parent) in [
            ("topology.site", "topology.region"),
            ("topology.rack", "topology.site"),
            ("compute.node", "topology.rack"),
        ] {
            let rule = types.get(&name(child)).unwrap().edge_rule(EdgeType::PartOf).unwrap();
            assert!(rule.targets.contains(&name(parent)), "{child}");
            assert_eq!((rule.max_targets, rule.cycles_allowed), (Some(1), false));
        }
    }

    #[test]
    fn every_target_in_the_taxonomy_exists() {
        for resource_type in types().iter() {
            for rule in &resource_type.edges {
                assert!(
                    rule.targets.iter().all(|t| types().get(t).is_some()),
                    "{}",
                    resource_type.name
                );
            }
        }
    }
}
