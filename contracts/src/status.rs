use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a resource stands in its life. A resource type says which transitions it allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleStatus {
    Planned,
    Provisioning,
    Running,
    Degraded,
    Maintenance,
    Decommissioning,
    Decommissioned,
    Failed,
}

/// How a resource is, as last observed. Missing input counts as `unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    Healthy,
    Degraded,
    Unhealthy,
    Unknown,
}

impl LifecycleStatus {
    /// Every status, in the order of a life.
    pub const ALL: [Self; 8] = [
        Self::Planned,
        Self::Provisioning,
        Self::Running,
        Self::Degraded,
        Self::Maintenance,
        Self::Decommissioning,
        Self::Decommissioned,
        Self::Failed,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Provisioning => "provisioning",
            Self::Running => "running",
            Self::Degraded => "degraded",
            Self::Maintenance => "maintenance",
            Self::Decommissioning => "decommissioning",
            Self::Decommissioned => "decommissioned",
            Self::Failed => "failed",
        }
    }
}

impl HealthStatus {
    /// Every status, best first.
    pub const ALL: [Self; 4] = [Self::Healthy, Self::Degraded, Self::Unhealthy, Self::Unknown];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
            Self::Unknown => "unknown",
        }
    }
}
