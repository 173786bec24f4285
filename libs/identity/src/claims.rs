//! What a token says.

use chrono::{DateTime, Utc};
use kernel::id::OrganizationId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::role::Role;

/// The claims of a token. Claims that are not named here are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who: `person:<name>`, `service:<name>` or `runner:<id>`.
    pub sub: String,
    /// The organization the caller acts in; everything else does not exist for it.
    pub org: OrganizationId,
    /// What the caller may do there.
    pub roles: Vec<Role>,
    /// Made at (seconds since the epoch on the wire).
    #[serde(with = "chrono::serde::ts_seconds")]
    pub iat: DateTime<Utc>,
    /// Void from this moment on.
    #[serde(with = "chrono::serde::ts_seconds")]
    pub exp: DateTime<Utc>,
    /// The name of whoever made the token. Informative: trust comes from the key alone.
    pub iss: String,
    /// The token's own id, for audit.
    pub jti: Uuid,
}

impl Claims {
    /// Whether `role` is among the roles.
    #[must_use]
    pub fn has_role(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}
