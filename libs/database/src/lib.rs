//! One service's PostgreSQL database: its roles, its pools, its transactions, its tests.
//!
//! Each service owns one database with three roles (`<service>_owner` runs migrations,
//! `<service>_api` serves requests, `<service>_worker` carries work on). None may bypass row-level
//! security, which every table forces with the policy
//! `organization_id = current_setting('app.organization_id', true)::uuid`.
//!
//! Invariants:
//! - Work on an organization's rows happens inside a transaction that names the organization
//!   ([`Database::begin`], [`Database::begin_hot`]); the setting ends with the transaction. Outside
//!   one the nil organization is set, which owns nothing, so a forgotten scope reads nothing.
//! - Naming the organization costs no round trip of its own.
//! - [`DatabaseUrl`] is the only place that knows how a URL is spelled; both client libraries are
//!   configured from it, TCP and Unix sockets alike. Its password never shows in `Debug` or errors.
//!
//! Two client libraries share one [`Database`]: sqlx (checked queries, for ordinary statements) and
//! tokio-postgres (pipelining, for hot paths).

mod error;
mod migrate;
mod org_transaction;
mod pools;
mod provision;
mod schema;
mod scope;
mod service;
#[cfg(feature = "testing")]
pub mod testing;
mod url;

pub use error::{DatabaseError, SqlState};
pub use migrate::migrate;
pub use org_transaction::OrgTransaction;
pub use pools::{Database, PoolSizes};
pub use provision::{RolePasswords, provision, provision_named};
pub use schema::schema_dump;
pub use scope::Scope;
pub use service::{ServiceDatabase, ServiceRole, ServiceUrls};
pub use url::DatabaseUrl;

pub use deadpool_postgres;
pub use sqlx;
pub use tokio_postgres;
