use kernel::ResourceId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a directed edge from a resource says about its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeType {
    HostedOn,
    MemberOf,
    PartOf,
    ConnectsTo,
    DependsOn,
    BacksUp,
}

impl EdgeType {
    /// Every edge type.
    pub const ALL: [Self; 6] = [
        Self::HostedOn,
        Self::MemberOf,
        Self::PartOf,
        Self::ConnectsTo,
        Self::DependsOn,
        Self::BacksUp,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HostedOn => "hosted_on",
            Self::MemberOf => "member_of",
            Self::PartOf => "part_of",
            Self::ConnectsTo => "connects_to",
            Self::DependsOn => "depends_on",
            Self::BacksUp => "backs_up",
        }
    }
}

/// An edge from the resource that carries it. Changing edges is a new version of their source only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct Edge {
    pub edge_type: EdgeType,
    pub target: ResourceId,
}

/// One page of the edges that leave a resource, by type and target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EdgePage {
    pub items: Vec<Edge>,
    /// Null on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// The version of the source that these are the edges of.
    pub version: i64,
    /// The head of the feed before the first page: a watch from here misses nothing.
    pub revision: i64,
}
