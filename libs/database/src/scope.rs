//! Whose rows a transaction may see.

use kernel::id::OrganizationId;

/// The scope of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One organization's rows.
    Organization(OrganizationId),
    /// No organization is named: only what the role's own policies open (wake-ups, outbox, queues,
    /// leases for the worker role) can be seen.
    All,
}

impl From<OrganizationId> for Scope {
    fn from(organization: OrganizationId) -> Self {
        Self::Organization(organization)
    }
}

impl Scope {
    /// The same for a transaction whose commit need not be durable at once.
    pub(crate) fn begin_unsynced_sql(self) -> String {
        format!("{}; SET LOCAL synchronous_commit TO off", self.begin_sql())
    }

    /// The statements that begin a transaction in this scope, sent as one message.
    pub(crate) fn begin_sql(self) -> String {
        match self {
            // A UUID's text form needs no quoting.
            Self::Organization(organization) => {
                format!("BEGIN; SELECT set_config('app.organization_id', '{organization}', true)")
            }
            Self::All => "BEGIN".to_owned(),
        }
    }
}
