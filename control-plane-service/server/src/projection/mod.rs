//! The local copy of the catalog: resources, capabilities and edges, so that a preview asks nobody.
//!
//! Invariants:
//! - Facts are applied by version: an older one is dropped, the next one applied, a jump is made on the
//!   full state that the fact carries, and counted.
//! - A fact that cannot be applied sets its own resource aside and stops nothing; the next good fact of
//!   that resource brings it back.
//! - The position moves in the transaction that applies what was read, and only from where it was: two
//!   followers of one organization cannot undo each other's work.
//! - A rebuild replaces rows while they are read: at every moment each resource is there as some version of
//!   it was. It removes what the snapshot lacks. Nothing is set off by a fact: what was applied twice was
//!   applied once.

mod ask;
mod follower;
mod list;
pub mod read;
mod rebuild;
mod row;
mod store;
mod verdict;
pub mod wait;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api_kit::{OpenApiRouter, routes};
use control_plane_ports::EventSource;
use database::{Database, DatabaseError};
use kernel::id::OrganizationId;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use follower::FollowError;
pub use row::{Projected, RowError};
pub use verdict::{Verdict, judge};
pub use wait::{WaitFor, WaitForError};

use crate::planning::PlanningApp;

/// How often other processes' work is looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// Follows the catalogs of all organizations that have something here.
pub struct Projection {
    database: Database,
    events: Arc<dyn EventSource>,
    /// Known to be followed: their rows are there and stay.
    known: Mutex<HashSet<OrganizationId>>,
    /// Organizations may have come.
    asked: Notify,
    /// Counts what was applied, by anyone here.
    applied: watch::Sender<u64>,
    /// Counts rebuilds that were asked for here: who waits for news does not wait on.
    wanted: watch::Sender<u64>,
}

impl Projection {
    /// `database` is the worker role's.
    #[must_use]
    pub fn new(database: Database, events: Arc<dyn EventSource>) -> Arc<Self> {
        Arc::new(Self {
            database,
            events,
            known: Mutex::default(),
            asked: Notify::new(),
            applied: watch::Sender::new(0),
            wanted: watch::Sender::new(0),
        })
    }

    /// Has an organization's catalog followed from now on. A store that does not answer is asked again by
    /// the next one who needs it.
    pub async fn follow(&self, organization: OrganizationId) {
        if self.known().contains(&organization) {
            return;
        }
        match store::follow(&self.database, organization).await {
            Ok(is_new) => {
                self.known().insert(organization);
                if is_new {
                    self.asked.notify_one();
                }
            }
            Err(error) => tracing::warn!(error = %error, "an organization cannot be followed yet"),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashSet<OrganizationId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has an organization's copy made anew from a snapshot.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn ask_rebuild(&self, organization: OrganizationId) -> Result<(), DatabaseError> {
        store::ask_rebuild(&self.database, organization).await
    }

    /// One round for one organization, without waiting: a rebuild when one is due, else what came.
    ///
    /// # Errors
    /// The store or the source does not answer.
    pub async fn step(&self, organization: OrganizationId) -> Result<(), FollowError> {
        follower::round(self, organization, Duration::ZERO).await
    }

    /// Somebody asked for a rebuild, durably.
    pub(crate) fn rebuild_wanted(&self) {
        self.wanted.send_modify(|count| *count += 1);
    }

    fn tell_applied(&self) {
        self.applied.send_modify(|count| *count += 1);
    }

    /// Follows until `shutdown`, `organizations` from the beginning.
    pub async fn run(self: Arc<Self>, organizations: Vec<OrganizationId>, shutdown: CancellationToken) {
        for organization in organizations {
            self.follow(organization).await;
        }
        let mut followed = HashSet::new();
        let mut followers = JoinSet::new();
        loop {
            match store::organizations(&self.database).await {
                Ok(all) => {
                    for organization in all.into_iter().filter(|o| followed.insert(*o)) {
                        let this = Arc::clone(&self);
                        followers.spawn(follower::run(this, organization, shutdown.clone()));
                    }
                }
                Err(error) => tracing::warn!(error = %error, "the organizations to follow cannot be read"),
            }
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.asked.notified() => {}
                () = tokio::time::sleep(SWEEP) => {}
            }
        }
        while followers.join_next().await.is_some() {}
    }
}

/// The routes of projections.
pub fn routes() -> OpenApiRouter<PlanningApp> {
    OpenApiRouter::new()
        .routes(routes!(list::list_projections))
        .routes(routes!(ask::rebuild_projection))
}
