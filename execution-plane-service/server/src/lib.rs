//! execution-plane-service: the source of truth for what was run, by which runner, under which
//! lease, and where the raw output is.
//!
//! Invariants:
//! - An attempt is accepted once and granted to a runner at most once; a durable lease counts as
//!   "may have started".
//! - Every write of a runner is fenced by its lease's epoch and session.
//! - Result and final state are stored together, after all output and artifacts are durable.
//! - What another organization owns does not exist: in every query, and again by row-level security.

mod config;
mod core;
mod dispatch;
mod failpoint_names;
mod figures;
mod http;
mod output;
mod store;
mod workers;

use std::sync::Arc;

use api_kit::{BuildError, Health, Metrics};
use audit::Chainer;
use axum::Router;
use database::ServiceDatabase;
use identity::{TrustStore, TrustedKey, Vouch};
use outbox::Sequencer;
use tokio_util::sync::CancellationToken;

pub use config::{Config, Dependencies};
pub use execution_plane_domain::lease::LeaseTerms;
pub use execution_plane_domain::secrets::SecretRules;
pub use failpoint_names::FAILPOINTS;

/// The migrations of this service's database.
pub static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");

/// This service's database.
pub const DATABASE: ServiceDatabase = ServiceDatabase::new("execution_plane");

/// The service, ready to serve.
pub struct Service {
    core: Arc<core::Core>,
    router: Router,
}

/// Puts the service together. Its database is migrated already.
///
/// # Errors
/// The authorization table does not match the API (a programming error, told at the start).
pub async fn build(config: Config, dependencies: Dependencies) -> Result<Service, BuildError> {
    failpoints::declare(FAILPOINTS);
    let runners = TrustedKey::new(dependencies.runner_key.public_key(), [Vouch::Runners]);
    let trusted = dependencies.trust.keys().cloned().chain([runners]);
    let trust = TrustStore::new(trusted.collect::<Vec<_>>());
    let health = Health::default().database("database", &dependencies.api);
    let audit = dependencies.api.clone();
    let (metrics, readers) = (Metrics::new(), config.metrics_for);
    metrics.pools("api", &dependencies.api);
    metrics.pools("worker", &dependencies.worker);
    metrics.records(&dependencies.worker);
    let losses = figures::register(&metrics, &dependencies.worker);
    let core = core::Core::start(config, dependencies, losses);
    let api = http::api(core.clone())
        .health(health)
        .audit(audit)
        .metrics(metrics, readers)
        .build(trust)?;
    Ok(Service {
        core,
        router: api.router,
    })
}

/// The API's OpenAPI document.
///
/// # Errors
/// The authorization table does not match the API.
pub fn openapi() -> Result<utoipa::openapi::OpenApi, BuildError> {
    http::document().audit_described().openapi()
}

impl Service {
    /// Serves the API; give it to [`api_kit::serve`].
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Runs the background work (declaring attempts lost, the sequencer, the audit's chain, compaction) until
    /// `shutdown`.
    pub async fn run(&self, shutdown: CancellationToken) {
        let hot = &self.core.hot;
        let sequencer = Sequencer::new(hot.worker.clone(), hot.outbox.clone())
            .with_retention(self.core.hot.config.feed_retention)
            .with_failpoints(
                "execution_plane.sequence.before_commit",
                "execution_plane.sequence.after_commit",
            );
        let chainer = Chainer::new(hot.worker.clone()).with_failpoints(
            "execution_plane.audit_chain.before_commit",
            "execution_plane.audit_chain.after_commit",
        );
        tokio::join!(
            workers::reaper::run(hot.clone(), shutdown.clone()),
            workers::compactor::run(hot.clone(), shutdown.clone()),
            sequencer.run(shutdown.clone()),
            chainer.run(shutdown.clone()),
        );
    }
}
