//! What every request handler shares.

use std::sync::Arc;
use std::time::Duration;

use api_kit::Problem;
use database::Database;
use kernel::id::OrganizationId;
use sqlx::PgConnection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::feed::Feed;
use crate::registry::{Registries, Registry};
use crate::store::{StoreError, definitions};
use crate::updates::Updates;

/// The catalog as request handlers use it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalog(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    database: Database,
    registries: Registries,
    updates: Updates,
    feed: Feed,
    snapshots: Arc<Semaphore>,
}

/// Snapshots that are read at once. Each holds a connection for as long as its reader takes; the others are for work.
const SNAPSHOTS: usize = 2;
/// How long a reader waits for its turn.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(10);

impl Catalog {
    /// A catalog on `database` (the api role) that tells `feed` what was committed.
    pub fn new(database: Database, feed: Feed) -> Self {
        Self(Arc::new(Parts {
            database,
            registries: Registries::default(),
            updates: Updates::default(),
            feed,
            snapshots: Arc::new(Semaphore::new(SNAPSHOTS)),
        }))
    }

    /// The database, as the api role.
    pub fn database(&self) -> &Database {
        &self.0.database
    }

    /// Where resource update commands are decided.
    pub fn updates(&self) -> &Updates {
        &self.0.updates
    }

    /// The feed of committed changes.
    pub fn feed(&self) -> &Feed {
        &self.0.feed
    }

    /// A turn to read a snapshot.
    ///
    /// # Errors
    /// 503 when others take long.
    pub async fn snapshot_turn(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = Arc::clone(&self.0.snapshots).acquire_owned();
        match tokio::time::timeout(SNAPSHOT_PATIENCE, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(Problem::unavailable("Other snapshots are being read.")),
        }
    }

    /// Says that changes were committed.
    pub fn changed(&self) {
        self.0.feed.changed();
    }

    /// The registry of the organization that `connection` acts for.
    ///
    /// # Errors
    /// The database failed.
    pub async fn registry(
        &self,
        connection: &mut PgConnection,
        organization: OrganizationId,
    ) -> Result<Arc<Registry>, StoreError> {
        let revision = definitions::revision(connection, organization).await?;
        if let Some(registry) = self.0.registries.at(organization, revision) {
            return Ok(registry);
        }
        let registry = definitions::load(connection, organization, revision).await?;
        Ok(self.0.registries.keep(organization, registry))
    }

    /// The registry at `revision`, which the caller read in its own transaction, or a newer one.
    ///
    /// # Errors
    /// The database failed.
    pub async fn registry_at(&self, organization: OrganizationId, revision: i64) -> Result<Arc<Registry>, StoreError> {
        if let Some(registry) = self.0.registries.at(organization, revision) {
            return Ok(registry);
        }
        let mut transaction = self.database().begin(organization).await?;
        self.registry(&mut transaction, organization).await
    }
}
