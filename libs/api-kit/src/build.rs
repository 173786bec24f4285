//! From handlers to a router that keeps the rules.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use identity::TrustStore;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::{InfoBuilder, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::{AccessFault, AccessTable, Rule};
use crate::gate::{self, Gate};
use crate::health::{self, Health};
use crate::{openapi, request_id, rescue};

/// The largest request body unless a [`Rule`] says otherwise: 4 MiB.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

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
        let (router, mut document) = self.routes.merge(health).split_for_parts();
        document.info = InfoBuilder::new().title(self.title).version(self.version).build();
        let faults = self.table.check_complete(&document);
        if !faults.is_empty() {
            return Err(BuildError::Access(faults));
        }
        openapi::complete(&mut document, &self.table, self.body_limit);
        // The document's own path is not in the document.
        self.table.add(Rule::public("GET", "/openapi.json"));
        // By way of a value, whose keys are sorted: the document's own maps have no order of their own.
        let text = serde_json::to_value(&document)
            .and_then(|value| serde_json::to_string_pretty(&value))
            .map_err(BuildError::Document)?;
        let gate = Arc::new(Gate {
            table: self.table,
            trust,
            body_limit: self.body_limit,
        });
        let router = router
            .route("/openapi.json", get(move || rescue::json_text(text.clone())))
            .fallback(rescue::unknown_path)
            .layer(DefaultBodyLimit::disable())
            .layer(from_fn_with_state(gate, gate::pass))
            .layer(CatchPanicLayer::custom(rescue::panicked))
            .layer(from_fn(rescue::problems_only))
            .layer(from_fn(request_id::attach));
        Ok(Api {
            router,
            openapi: document,
        })
    }
}
