//! Roles: what a caller may do within one organization.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// One role. None implies another: an approver may not execute, an operator may not approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Makes plans, runs operations, intervenes in them.
    Operator,
    /// Decides at gates.
    Approver,
    /// Sets up types, policies, packs, enrolment.
    Admin,
    /// A runner: takes leases and reports.
    Runner,
    /// Another service of the platform, acting for an organization.
    Service,
}

/// The text names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role: viewer, operator, approver, admin, runner or service")]
pub struct RoleError(String);

impl Role {
    /// All roles.
    pub const ALL: [Self; 6] = [
        Self::Viewer,
        Self::Operator,
        Self::Approver,
        Self::Admin,
        Self::Runner,
        Self::Service,
    ];

    /// The role's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Approver => "approver",
            Self::Admin => "admin",
            Self::Runner => "runner",
            Self::Service => "service",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = RoleError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| RoleError(text.chars().take(40).collect()))
    }
}
