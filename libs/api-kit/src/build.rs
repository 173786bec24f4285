//! From handlers to a router that keeps the rules.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use database::Database;
use identity::TrustStore;
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::{InfoBuilder, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::{AccessFault, AccessTable, Rule};
use crate::declared::{self, Declared};
use crate::gate::{self, Gate};
use crate::health::{self, Health};
use crate::metrics::{self, Metrics, MetricsFor};
use crate::{audit, openapi, request_id, rescue};

/// The largest request body unless a [`Rule`] says otherwise: 4 MiB.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

/// How many requests of people and their programs are worked on at once unless said otherwise. More would wait
/// for a connection to the database for longer than anybody waits for them.
const PLACES: usize = 256;

/// Why an API does not build.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The authorization table and the document differ.
    #[error("the authorization table does not match the API: {}", list(.0))]
    Access(Vec<AccessFault>),
    /// The document cannot be written as JSON.
    #[error("the OpenAPI document cannot be written")]
    Document(#[source] serde_json::Error),
}

fn list(faults: &[AccessFault]) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    faults.join("; ")
}

/// A finished API.
#[derive(Clone)]
pub struct Api {
    /// Serves it, all layers included. Give it to [`crate::serve`].
    pub router: Router,
    /// Its OpenAPI 3.1 document, as served at `/openapi.json`.
    pub openapi: OpenApi,
}

/// Puts the layers around a service's handlers.
pub struct ApiBuilder {
    title: String,
    version: String,
    routes: OpenApiRouter,
    table: AccessTable,
    health: Health,
    body_limit: usize,
    places: usize,
    audit: Audit,
    metrics: Metrics,
    metrics_for: MetricsFor,
}

/// Whether commands leave facts, and where.
enum Audit {
    None,
    Described,
    Kept(Database),
}

impl ApiBuilder {
    /// An API called `title` of the handlers in `routes` (their state already given).
    pub fn new(
        title: impl Into<String>,
        version: impl Into<String>,
        routes: OpenApiRouter,
        table: AccessTable,
    ) -> Self {
        Self {
            title: title.into(),
            version: version.into(),
            routes,
            table,
            health: Health::default(),
            body_limit: BODY_LIMIT,
            places: PLACES,
            audit: Audit::None,
            metrics: Metrics::new(),
            metrics_for: MetricsFor::default(),
        }
    }

    /// What `/readyz` asks.
    #[must_use]
    pub fn health(mut self, health: Health) -> Self {
        self.health = health;
        self
    }

    /// Another largest request body than 4 MiB.
    #[must_use]
    pub const fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// Another number of requests at once than 256; beyond, they are refused with 503 `overloaded`.
    #[must_use]
    pub const fn places(mut self, requests: usize) -> Self {
        self.places = requests;
        self
    }

    /// Every write leaves a fact in the table `audit` of `database` (as the api role), and the audit can be read.
    #[must_use]
    pub fn audit(mut self, database: Database) -> Self {
        self.audit = Audit::Kept(database);
        self
    }

    /// What `/metrics` tells, and whom without a token.
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics, readers: MetricsFor) -> Self {
        self.metrics = metrics;
        self.metrics_for = readers;
        self
    }

    /// Describes the audit in the document, without a database.
    #[must_use]
    pub fn audit_described(mut self) -> Self {
        self.audit = Audit::Described;
        self
    }

    /// Only the document, for the committed copy. Needs no keys.
    ///
    /// # Errors
    /// As [`ApiBuilder::build`].
    pub fn openapi(self) -> Result<OpenApi, BuildError> {
        self.build(TrustStore::new([])).map(|api| api.openapi)
    }

    /// The finished API; callers are believed by `trust`.
    ///
    /// # Errors
    /// [`BuildError::Access`] when an operation is not in the table, or the other way round.
    pub fn build(mut self, trust: TrustStore) -> Result<Api, BuildError> {
        self.table.add(Rule::public("GET", "/healthz"));
        self.table.add(Rule::public("GET", "/readyz"));
        let health = OpenApiRouter::new()
            .routes(routes!(health::healthz))
            .routes(routes!(health::readyz))
            .with_state(self.health);
        let mut routes = self.routes.merge(health);
        let audited = !matches!(self.audit, Audit::None);
        let database = match self.audit {
            Audit::Kept(database) => Some(database),
            Audit::None | Audit::Described => None,
        };
        if audited {
            audit::rules().into_iter().for_each(|rule| self.table.add(rule));
            routes = routes.merge(audit::routes(database.clone()));
        }
        let (router, mut document) = routes.split_for_parts();
        document.info = InfoBuilder::new().title(self.title).version(self.version).build();
        let mut faults = self.table.check_complete(&document);
        if audited {
            faults.extend(self.table.check_audited());
        }
        if !faults.is_empty() {
            return Err(BuildError::Access(faults));
        }
        openapi::complete(&mut document, &self.table, self.body_limit);
        // Not of the API, so not in its document.
        self.table.add(Rule::public("GET", "/openapi.json"));
        self.table.add(Rule::public("GET", "/metrics"));
        // By way of a value, whose keys are sorted: the document's own maps have no order of their own.
        let text = serde_json::to_value(&document)
            .and_then(|value| serde_json::to_string_pretty(&value))
            .map_err(BuildError::Document)?;
        let gate = Arc::new(Gate {
            table: self.table,
            trust,
            body_limit: self.body_limit,
            audit: database,
            metrics: self.metrics.clone(),
            places: Semaphore::new(self.places),
        });
        let router = router
            .route(
                "/metrics",
                get(metrics::read).with_state((self.metrics.clone(), self.metrics_for)),
            )
            .route("/openapi.json", get(move || rescue::json_text(text.clone())))
            .fallback(rescue::unknown_path)
            .layer(DefaultBodyLimit::disable())
            // Within the gate too, so that a handler that panics leaves its fact.
            .layer(CatchPanicLayer::custom(rescue::panicked))
            .layer(from_fn_with_state(gate, gate::pass))
            .layer(from_fn_with_state(Declared::of(&document), declared::check))
            .layer(CatchPanicLayer::custom(rescue::panicked))
            .layer(from_fn(rescue::problems_only))
            .layer(from_fn(request_id::attach))
            .layer(from_fn_with_state(self.metrics, metrics::count));
        Ok(Api {
            router,
            openapi: document,
        })
    }
}
