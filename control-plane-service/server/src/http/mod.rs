//! The HTTP edge: one verb a file, wire types in and out, no rule of the domain.

pub mod access;
mod claims;
mod command;
mod fault;
mod feed;
mod gates;
mod operations;
mod runtime;

use std::sync::Arc;

use api_kit::{OpenApiRouter, Problem, database_problem, routes};
use control_plane_proof::Signer;
use database::{Database, DatabaseError};
use kernel::id::OrganizationId;
use outbox::{Feed, FeedError};
use sqlx::{Postgres, Transaction};

use crate::engine::Engine;
use crate::planner::Planner;

/// What the handlers of operations work with.
#[derive(Clone)]
pub struct App {
    pub engine: Arc<Engine>,
    /// The api role's database.
    pub database: Database,
    pub planner: Arc<dyn Planner>,
    pub signer: Arc<dyn Signer + Send + Sync>,
    pub feed: Feed,
}

impl App {
    /// A transaction for reading what the organization may see.
    pub(crate) async fn read(
        &self,
        organization: OrganizationId,
    ) -> Result<Transaction<'static, Postgres>, DatabaseError> {
        self.database.begin(organization).await
    }
}

/// The head of the feed: what changes after it is in the feed beyond this revision.
pub(crate) async fn head(feed: &Feed) -> Result<i64, Problem> {
    feed.head().await.map_err(|error| match error {
        FeedError::Database(error) => database_problem(&error),
        error => api_kit::internal_problem(&error),
    })
}

/// The routes of operations.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(operations::create::create_operation))
        .routes(routes!(operations::list::list_operations))
        .routes(routes!(operations::get::get_operation))
        .routes(routes!(operations::node_runs::list_node_runs))
        .routes(routes!(operations::events::list_events))
        .routes(routes!(operations::watch::watch_operation))
        .routes(routes!(operations::proof::export_proof))
        .routes(routes!(operations::intervene::intervene))
        .routes(routes!(gates::list::list_gates))
        .routes(routes!(gates::decide::decide_gate))
        .routes(routes!(claims::list_claims))
        .routes(routes!(runtime::get_runtime))
        .routes(routes!(feed::read_feed))
}
