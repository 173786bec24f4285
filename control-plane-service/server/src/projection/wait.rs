//! Waiting for the copy to know a version: who has just written to the catalog can have a plan that
//! knows of it.

use core::str::FromStr;
use std::time::Duration;

use api_kit::{FieldError, Problem, database_problem};
use database::Database;
use kernel::ResourceId;
use kernel::id::OrganizationId;

use super::Projection;

/// How long a preview waits at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often other processes' work is looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// `RESOURCE@VERSION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitFor {
    pub resource_id: ResourceId,
    pub version: i64,
}

/// The text is no `RESOURCE@VERSION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write RESOURCE@VERSION, like node/web-1@7")]
pub struct WaitForError;

impl FromStr for WaitFor {
    type Err = WaitForError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (resource_id, version) = text.split_once('@').ok_or(WaitForError)?;
        let version: i64 = version.parse().map_err(|_| WaitForError)?;
        Ok(Self {
            resource_id: resource_id.parse().map_err(|_| WaitForError)?,
            version: if version >= 0 {
                version
            } else {
                return Err(WaitForError);
            },
        })
    }
}

impl Projection {
    /// Waits until the copy knows the resource at this version or a later one. `database` is the one the
    /// caller reads with.
    ///
    /// # Errors
    /// 409 `projection_behind` when it takes too long.
    pub async fn wait_for(
        &self,
        database: &Database,
        organization: OrganizationId,
        wanted: &WaitFor,
    ) -> Result<(), Problem> {
        let mut applied = self.applied.subscribe();
        let waiting = async {
            loop {
                applied.mark_unchanged();
                if known(database, organization, wanted).await? {
                    return Ok(());
                }
                tokio::select! {
                    // The sender lives as long as this projection.
                    _ = applied.changed() => {}
                    () = tokio::time::sleep(SWEEP) => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| {
            Err(Problem::conflict(
                "projection_behind",
                format!(
                    "The copy of the catalog does not know {}@{} yet.",
                    wanted.resource_id, wanted.version
                ),
            )
            .remedy("Try again, look at GET /v1/projections, or plan without wait_for.")
            .retry_after(1))
        })
    }
}

async fn known(database: &Database, organization: OrganizationId, wanted: &WaitFor) -> Result<bool, Problem> {
    let mut tx = database.begin(organization).await.map_err(|e| database_problem(&e))?;
    let version = sqlx::query_scalar!(
        "SELECT version FROM projected_resources WHERE resource_id = $1",
        wanted.resource_id.as_str()
    )
    .fetch_optional(&mut *tx)
    .await
    .map_err(|error| database_problem(&error.into()))?;
    Ok(version.is_some_and(|version| version >= wanted.version))
}

/// The `wait_for` of a query.
///
/// # Errors
/// 422 when it is no `RESOURCE@VERSION`.
pub fn parse(text: &str) -> Result<WaitFor, Problem> {
    text.parse()
        .map_err(|error: WaitForError| Problem::invalid([FieldError::new("/wait_for", "invalid", error.to_string())]))
}
