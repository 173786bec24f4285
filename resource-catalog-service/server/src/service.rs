//! The service as a whole: its router, and what runs beside it.

use std::time::Duration;

use api_kit::{ApiBuilder, Health, Metrics, OpenApiRouter};
use audit::Chainer;
use axum::Router;
use database::{Database, DatabaseError, PoolSizes, ServiceDatabase};
use outbox::{Sequencer, Signal};
use sqlx::migrate::Migrator;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;

use crate::catalog::Catalog;
use crate::config::Config;
use crate::failpoint::FAILPOINTS;
use crate::feed::Feed;
use crate::http;

/// The migrations of the service's database.
pub static MIGRATOR: Migrator = sqlx::migrate!();
/// The name of the service's database and the stem of its roles.
pub const DATABASE: ServiceDatabase = ServiceDatabase::new("resource_catalog");

const TITLE: &str = "resource-catalog-service";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How often what is kept for a time only is swept.
const SWEEP: Duration = Duration::from_secs(3_600);

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the catalog's database cannot be used")]
    Database(#[from] DatabaseError),
    #[error("the catalog's API does not hold together")]
    Api(#[from] api_kit::BuildError),
}

/// A service that is ready to serve.
pub struct Service {
    router: Router,
    openapi: OpenApi,
    worker: Database,
    chainer: Chainer,
    sequencer: Sequencer,
}

/// Prepares the service: migrates the database and puts everything together. Serve [`Service::router`] and run
/// [`Service::run`] beside it.
///
/// # Errors
/// The database cannot be migrated or used.
pub async fn build(config: Config) -> Result<Service, BuildError> {
    failpoints::declare(FAILPOINTS);
    database::migrate(&config.database.owner, &MIGRATOR).await?;
    let api = Database::open(&config.database.api, TITLE, config.pool_sizes)?;
    let worker_sizes = PoolSizes {
        sqlx: 1,
        hot: 2,
        ..config.pool_sizes
    };
    let worker = Database::open(&config.database.worker, TITLE, worker_sizes)?;
    let signal = Signal::default();
    let metrics = Metrics::new();
    metrics.pools("api", &api);
    metrics.pools("worker", &worker);
    metrics.records(&worker);
    let catalog = Catalog::new(api.clone(), Feed::new(api.clone(), signal.clone()));
    watch_updates(&metrics, &catalog);
    let built = api_builder(http::routes().with_state(catalog))
        .health(Health::default().database("database", &api))
        .audit(api.clone())
        .metrics(metrics, config.metrics_for)
        .build(config.trust)?;
    let chainer = Chainer::new(worker.clone())
        .with_failpoints("catalog.audit_chain.before_commit", "catalog.audit_chain.after_commit");
    let sequencer = Sequencer::new(worker.clone(), signal)
        .with_retention(config.feed_retention)
        .with_failpoints("catalog.sequencer.before_commit", "catalog.sequencer.after_commit");
    Ok(Service {
        router: built.router,
        openapi: built.openapi,
        worker,
        chainer,
        sequencer,
    })
}

/// Tells how many resource updates wait to be decided.
fn watch_updates(metrics: &Metrics, catalog: &Catalog) {
    let waiting = metrics.figure(
        "resource_updates_waiting",
        "Resource updates that wait for their transaction",
    );
    let catalog = catalog.clone();
    metrics.look(move || {
        waiting.set(catalog.updates().waiting() as f64);
        core::future::ready(Ok(()))
    });
}

fn api_builder(routes: OpenApiRouter) -> ApiBuilder {
    ApiBuilder::new(TITLE, VERSION, routes, http::access_table())
}

impl Service {
    /// Serves the API. Give it to [`api_kit::serve`].
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// The API's document.
    #[must_use]
    pub const fn openapi(&self) -> &OpenApi {
        &self.openapi
    }

    /// Carries changes into the feed, chains audit facts and sweeps what is kept for a time only, until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let sweep = async {
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = tokio::time::sleep(SWEEP) => {}
                }
                while let Ok(1_000..) = api_kit::idempotency_hot::reap(&self.worker).await {}
            }
        };
        tokio::join!(
            self.sequencer.clone().run(shutdown.clone()),
            self.chainer.clone().run(shutdown.clone()),
            sweep
        );
    }
}

/// The API's document, without a database.
///
/// # Panics
/// Never: a test holds the authorization table against the API.
#[must_use]
pub fn openapi() -> OpenApi {
    let (_, document) = http::routes().split_for_parts();
    api_builder(OpenApiRouter::with_openapi(document))
        .audit_described()
        .openapi()
        .expect("the authorization table matches the API, as a test shows")
}

/// The API's document as it is committed: JSON with its keys in order, so that the same API is the same text.
///
/// # Panics
/// Never: a document is JSON.
#[must_use]
pub fn openapi_document() -> String {
    let sorted = serde_json::to_value(openapi()).expect("an OpenAPI document is JSON");
    format!("{sorted:#}\n")
}
