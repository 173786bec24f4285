//! Who is calling, for handlers.

use axum::extract::FromRequestParts;
use http::request::Parts;
use identity::{Claims, Role};
use kernel::id::OrganizationId;
use uuid::Uuid;

use crate::Problem;
use crate::audit::Act;

/// The authenticated caller. Its organization bounds everything a handler does.
#[derive(Debug, Clone)]
pub struct Caller {
    /// `person:<name>`, `service:<name>` or `runner:<id>`.
    pub subject: String,
    /// The organization it acts in.
    pub organization: OrganizationId,
    /// What it may do there.
    pub roles: Vec<Role>,
    /// The token's id, for audit.
    pub token_id: Uuid,
    /// What the audit is to tell of this request.
    pub act: Act,
}

impl Caller {
    pub(crate) fn from_claims(claims: Claims) -> Self {
        Self {
            subject: claims.sub,
            organization: claims.org,
            roles: claims.roles,
            token_id: claims.jti,
            act: Act::default(),
        }
    }

    /// Whether `role` is among the roles.
    #[must_use]
    pub fn has_role(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Refuses a caller without `role`, where a handler asks for more than the table does.
    ///
    /// # Errors
    /// 403 `forbidden`.
    pub fn require(&self, role: Role) -> Result<(), Problem> {
        if self.has_role(role) {
            Ok(())
        } else {
            Err(Problem::forbidden(format!("This takes the role {role}.")))
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // Absent only on a public operation, which must not ask for a caller.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            tracing::error!(path = %parts.uri.path(), "a public operation asks who is calling");
            Problem::internal()
        })
    }
}
