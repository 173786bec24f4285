//! The service put together: routes around the engine, and the workers beside it.

use std::sync::Arc;
use std::time::Duration;

use api_kit::{AccessTable, Api, ApiBuilder, Health, Metrics, MetricsFor, OpenApiRouter, Rule};
use audit::Chainer;
use axum::Router;
use control_plane_ports::{DurableRuntime, EventSource};
use control_plane_proof::Signer;
use database::{Database, DatabaseError, PoolSizes, ServiceUrls};
use futures::future::BoxFuture;
use identity::TrustStore;
use kernel::id::OrganizationId;
use outbox::{Feed, Sequencer, Signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::effects::Performer;
use crate::engine::Engine;
use crate::engine::driver::Driver;
use crate::expressions::CelExpressions;
use crate::http::{self, App};
use crate::planner::Planner;
use crate::{figures, planning, points, workers};

const TITLE: &str = "control-plane-service";

/// Where the service's data is.
#[derive(Debug, Clone)]
pub struct Config {
    pub database: ServiceUrls,
    /// Sizes of the api role's pools.
    pub api_pool: PoolSizes,
    /// Sizes of the worker role's pools.
    pub worker_pool: PoolSizes,
    /// How long the feed keeps events that every known consumer has.
    pub feed_retention: Duration,
    /// Who may read `/metrics`.
    pub metrics_for: MetricsFor,
}

impl Config {
    /// The usual sizes.
    #[must_use]
    pub fn new(database: ServiceUrls) -> Self {
        Self {
            database,
            api_pool: PoolSizes::default(),
            worker_pool: PoolSizes {
                hot: 10,
                ..PoolSizes::default()
            },
            feed_retention: outbox::RETENTION,
            metrics_for: MetricsFor::default(),
        }
    }
}

/// What the service needs from outside.
pub struct Deps {
    /// Whose tokens are believed.
    pub trust: TrustStore,
    pub runtime: Arc<dyn DurableRuntime>,
    /// resource-catalog-service, with this service's own tokens.
    pub catalog: client_kit::Client,
    /// execution-plane-service, with this service's own tokens.
    pub execution: client_kit::Client,
    /// Holds the platform's proof key.
    pub signer: Arc<dyn Signer + Send + Sync>,
}

/// Background work that ends when it is told to.
pub type Worker = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// The planning side of the service: packs, plans, projections.
pub struct PlanningSide {
    pub planner: Arc<dyn Planner>,
    pub routes: OpenApiRouter,
    pub rules: Vec<Rule>,
    pub workers: Vec<Worker>,
}

/// The service could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the database pools could not be made")]
    Database(#[from] DatabaseError),
    #[error("the API could not be put together")]
    Api(#[from] api_kit::BuildError),
}

/// The service: give [`Service::router`] to a server and [`Service::run`] to a task.
pub struct Service {
    api: Api,
    engine: Arc<Engine>,
    driver: Arc<Driver>,
    execution: client_kit::Client,
    chainer: Chainer,
    sequencer: Sequencer,
    workers: Vec<Worker>,
}

/// Puts the service together. Nothing runs and nothing is connected yet. `events` are the catalog's
/// facts; those of `organizations` are followed from the start, others from their first pack or plan on.
///
/// # Errors
/// [`BuildError`].
pub fn build(
    config: &Config,
    deps: Deps,
    events: Arc<dyn EventSource>,
    organizations: Vec<OrganizationId>,
) -> Result<Service, BuildError> {
    let side = planning::side(config, events, deps.execution.clone(), organizations)?;
    build_with(config, deps, side)
}

/// Puts the service together with another planning side.
///
/// # Errors
/// [`BuildError`].
pub fn build_with(config: &Config, deps: Deps, planning: PlanningSide) -> Result<Service, BuildError> {
    failpoints::declare(points::POINTS);
    let api_database = Database::open(&config.database.api, "control-plane-api", config.api_pool)?;
    let worker_database = Database::open(&config.database.worker, "control-plane-worker", config.worker_pool)?;
    let signal = Signal::default();
    let engine = Engine::new(
        api_database.clone(),
        worker_database.clone(),
        Arc::new(CelExpressions),
        deps.runtime,
        signal.clone(),
    );
    let app = App {
        engine: engine.clone(),
        feed: Feed::new(api_database.clone(), signal.clone()),
        planner: planning.planner,
        signer: deps.signer,
        database: api_database.clone(),
    };
    let routes = http::routes().with_state(app).merge(planning.routes);
    let metrics = Metrics::new();
    metrics.pools("api", &api_database);
    metrics.pools("worker", &worker_database);
    metrics.records(&worker_database);
    figures::register(&metrics, &worker_database);
    let health = Health::default().database("database", &api_database);
    let api = ApiBuilder::new(TITLE, env!("CARGO_PKG_VERSION"), routes, table(planning.rules))
        .health(health)
        .audit(api_database)
        .metrics(metrics, config.metrics_for)
        .build(deps.trust)?;
    // The runtime has a schedule of its own for effects that are not answered.
    let once = client_kit::Retries::NONE;
    let execution = deps.execution.with_retries(once);
    let performer = Performer::new(deps.catalog.with_retries(once), execution.clone());
    Ok(Service {
        api,
        driver: Driver::new(engine.clone(), performer),
        engine,
        execution,
        chainer: Chainer::new(worker_database.clone()).with_failpoints(
            "control_plane.audit_chain.before_commit",
            "control_plane.audit_chain.after_commit",
        ),
        sequencer: Sequencer::new(worker_database, signal)
            .with_retention(config.feed_retention)
            .with_failpoints("control_plane.feed.before_commit", "control_plane.feed.after_commit"),
        workers: planning.workers,
    })
}

fn table(planning: Vec<Rule>) -> AccessTable {
    AccessTable::new(http::access::rules().into_iter().chain(planning))
}

/// The API's document.
///
/// # Panics
/// When a route is not in the authorization table, or the other way round; a test keeps that from
/// happening.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    let (_, mut document) = http::routes().split_for_parts();
    let (_, planning) = planning::routes().split_for_parts();
    document.merge(planning);
    let routes = OpenApiRouter::with_openapi(document);
    ApiBuilder::new(TITLE, env!("CARGO_PKG_VERSION"), routes, table(planning::rules()))
        .audit_described()
        .openapi()
        .expect("a test holds the routes against the authorization table")
}

/// The API's document as it is committed: sorted, so that the same API is the same text.
///
/// # Panics
/// As [`openapi`].
#[must_use]
pub fn openapi_document() -> String {
    let sorted = serde_json::to_value(openapi()).expect("an OpenAPI document is JSON");
    format!("{sorted:#}\n")
}

impl Service {
    /// Serves the API.
    pub fn router(&self) -> Router {
        self.api.router.clone()
    }

    /// The API's document.
    #[must_use]
    pub const fn openapi(&self) -> &utoipa::openapi::OpenApi {
        &self.api.openapi
    }

    /// The engine, for who embeds the service.
    #[must_use]
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Drives operations and does all other background work until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut tasks = JoinSet::new();
        let runtime = self.engine.runtime().clone();
        let (driver, wakeups, stop) = (self.driver, self.engine.clone(), shutdown.clone());
        tasks.spawn(async move { runtime.run(driver, wakeups, stop).await });
        tasks.spawn(workers::results::run(
            self.engine.clone(),
            self.execution,
            shutdown.clone(),
        ));
        tasks.spawn(workers::tidy::run(self.engine, shutdown.clone()));
        tasks.spawn(self.sequencer.run(shutdown.clone()));
        tasks.spawn(self.chainer.run(shutdown.clone()));
        for worker in self.workers {
            tasks.spawn(worker(shutdown.clone()));
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                // A worker that is gone would be missed silently: the process must not go on without it.
                shutdown.cancel();
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }
}
