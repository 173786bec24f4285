//! The server side of the rules that hold for every API of the platform.
//!
//! A service writes handlers; everything that must be the same everywhere is a layer or an
//! extractor here: authentication and the authorization table, problem details for every error,
//! strict request bodies and queries, idempotency, versions as `ETag`, cursors, limits, Server-Sent
//! Events, health, the OpenAPI document, and a graceful end.
//!
//! Invariants:
//! - No route can be reached that is not in the [`AccessTable`]; a table that does not match the
//!   OpenAPI document does not build ([`ApiBuilder::build`]).
//! - Every answer with a status from 400 on is `application/problem+json` with a `code`, also those
//!   made by axum, by a panic, or by nobody.
//! - What a handler gets is authenticated, within its size, of the right type and without unknown
//!   fields; what it does not accept is named by pointer, all of it at once.
//!
//! How a service uses it:
//! ```
//! use api_kit::{AccessTable, ApiBuilder, Caller, OpenApiRouter, Problem, Rule, StrictJson, routes};
//! use identity::{Role, TrustStore};
//!
//! #[derive(serde::Deserialize, utoipa::ToSchema)]
//! struct NewNote { body: String }
//!
//! /// Writes a note.
//! #[utoipa::path(post, path = "/v1/notes", request_body = NewNote, responses((status = 201)))]
//! async fn create_note(caller: Caller, StrictJson(note): StrictJson<NewNote>) -> Result<axum::http::StatusCode, Problem> {
//!     tracing::info!(%caller.organization, length = note.body.len(), "a note");
//!     Ok(axum::http::StatusCode::CREATED)
//! }
//!
//! let table = AccessTable::new([Rule::new("POST", "/v1/notes", &[Role::Operator]).idempotency_key()]);
//! let api = ApiBuilder::new("notes", "1.0.0", OpenApiRouter::new().routes(routes!(create_note)), table)
//!     .build(TrustStore::new([]))?;
//! let _router: axum::Router = api.router;
//! # Ok::<(), api_kit::BuildError>(())
//! ```

mod access;
mod audit;
mod build;
mod caller;
mod closing;
mod cursor;
mod declared;
mod failure;
mod gate;
mod health;
mod idempotency;
mod json;
mod json_guard;
mod limit;
mod metrics;
mod openapi;
mod paging;
mod path;
mod peer;
mod query;
mod request_id;
mod rescue;
mod server;
mod sse;
#[cfg(feature = "testing")]
pub mod testing;
mod version;

pub use access::{Access, AccessFault, AccessTable, Rule};
pub use audit::{Act, Tell};
pub use build::{Api, ApiBuilder, BuildError};
pub use caller::Caller;
pub use closing::Closing;
pub use cursor::Cursor;
pub use failure::{database_problem, internal_problem};
pub use health::{Check, Health};
pub use idempotency::{
    Claim, IdempotencyKey, IdempotentJson, IdempotentRequest, StoredResponse, hot as idempotency_hot,
    sqlx as idempotency_sqlx,
};
pub use json::{StrictJson, parse_json};
pub use limit::Limit;
pub use metrics::{Counters, Figure, Gauges, Metrics, MetricsFor};
pub use paging::Paging;
pub use path::StrictPath;
pub use problem::{FieldError, Problem};
pub use query::StrictQuery;
pub use request_id::RequestId;
pub use server::serve;
pub use sse::{LastEventId, SseEvent, sse};
pub use version::{ETag, IfMatch};

pub use utoipa_axum::router::OpenApiRouter;
pub use utoipa_axum::routes;
