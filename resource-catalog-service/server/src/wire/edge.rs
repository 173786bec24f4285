use resource_catalog_api as api;
use resource_catalog_domain as domain;

/// The domain's edge type.
pub const fn edge_type(word: api::EdgeType) -> domain::EdgeType {
    match word {
        api::EdgeType::HostedOn => domain::EdgeType::HostedOn,
        api::EdgeType::MemberOf => domain::EdgeType::MemberOf,
        api::EdgeType::PartOf => domain::EdgeType::PartOf,
        api::EdgeType::ConnectsTo => domain::EdgeType::ConnectsTo,
        api::EdgeType::DependsOn => domain::EdgeType::DependsOn,
        api::EdgeType::BacksUp => domain::EdgeType::BacksUp,
    }
}

/// The wire's edge type.
pub const fn edge_type_word(edge_type: domain::EdgeType) -> api::EdgeType {
    match edge_type {
        domain::EdgeType::HostedOn => api::EdgeType::HostedOn,
        domain::EdgeType::MemberOf => api::EdgeType::MemberOf,
        domain::EdgeType::PartOf => api::EdgeType::PartOf,
        domain::EdgeType::ConnectsTo => api::EdgeType::ConnectsTo,
        domain::EdgeType::DependsOn => api::EdgeType::DependsOn,
        domain::EdgeType::BacksUp => api::EdgeType::BacksUp,
    }
}

/// An edge, as the domain has it.
pub fn edge(edge: api::Edge) -> domain::Edge {
    domain::Edge {
        edge_type: edge_type(edge.edge_type),
        target: edge.target,
    }
}

/// An edge, as the wire has it.
pub fn edge_word(edge: &domain::Edge) -> api::Edge {
    api::Edge {
        edge_type: edge_type_word(edge.edge_type),
        target: edge.target.clone(),
    }
}

/// An edge rule, as the domain has it.
pub fn rule(rule: &api::EdgeRule) -> domain::EdgeRule {
    domain::EdgeRule {
        edge_type: edge_type(rule.edge_type),
        targets: rule.targets.clone(),
        max_targets: rule.max_targets,
        max_sources: rule.max_sources,
        cycles_allowed: rule.cycles_allowed,
        on_delete: match rule.on_delete {
            api::OnDelete::Restrict => domain::OnDelete::Restrict,
            api::OnDelete::Detach => domain::OnDelete::Detach,
        },
        carries_health: rule.carries_health,
    }
}

/// An edge rule, as the wire has it.
pub fn rule_word(rule: &domain::EdgeRule) -> api::EdgeRule {
    api::EdgeRule {
        edge_type: edge_type_word(rule.edge_type),
        targets: rule.targets.clone(),
        max_targets: rule.max_targets,
        max_sources: rule.max_sources,
        cycles_allowed: rule.cycles_allowed,
        on_delete: match rule.on_delete {
            domain::OnDelete::Restrict => api::OnDelete::Restrict,
            domain::OnDelete::Detach => api::OnDelete::Detach,
        },
        carries_health: rule.carries_health,
    }
}
