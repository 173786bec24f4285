//! Runners: enrolment, what they offer, and how people see and drain them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use contracts::{Isolation, JobType};
use kernel::id::RunnerId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// `POST /v1/runner/sessions`, with an enrolment token (subject `enrolment:NAME`, role runner) or
/// with the runner's own token. The same name is the same runner: it keeps its id over restarts. The
/// same instance keeps its session and only gets another token; a new instance begins a new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionRequest {
    /// One life of the runner's process: drawn at its start, never kept over a restart.
    pub instance: Uuid,
    pub registration: RunnerRegistration,
}

/// What a runner is and offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerRegistration {
    /// Unique in the organization; the one that the enrolment token names.
    pub name: String,
    /// Further names that a JobSpec's `runner.name` may ask for (`ansible-runner`, `default`).
    #[serde(default)]
    pub pools: Vec<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub job_types: Vec<JobType>,
    /// Every grade that it can give.
    pub isolation: Vec<Isolation>,
    /// Most attempts at once.
    pub capacity: u32,
    /// Environments that it serves; empty serves all.
    #[serde(default)]
    pub environments: Vec<String>,
    /// The software version of the runner, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A session: the runner's identity and its token until `expires_at`.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunnerSession {
    pub runner_id: RunnerId,
    /// Grows with each life of this runner's process.
    pub session: u64,
    /// Bearer token for `/v1/runner/...`; rotate it before it expires.
    pub token: String,
    pub expires_at: DateTime<Utc>,
    /// How long the token is valid from now on: for a runner whose clock tells another time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_seconds: Option<f64>,
    /// How long a lease runs from a grant or a renewal.
    pub lease_seconds: f64,
    /// How much longer the service waits before it declares an attempt lost.
    pub grace_seconds: f64,
}

impl core::fmt::Debug for RunnerSession {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RunnerSession")
            .field("runner_id", &self.runner_id)
            .field("session", &self.session)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Whether a runner takes work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunnerStatus {
    /// Heard from within a lease.
    Online,
    /// Finishes what it has, gets nothing new.
    Draining,
    Offline,
}

/// A runner as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Runner {
    pub runner_id: RunnerId,
    pub name: String,
    pub pools: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub job_types: Vec<JobType>,
    pub isolation: Vec<Isolation>,
    pub capacity: u32,
    pub environments: Vec<String>,
    pub software_version: Option<String>,
    pub status: RunnerStatus,
    /// Attempts that it has now.
    pub in_use: u32,
    pub version: u64,
    pub last_seen_at: DateTime<Utc>,
    pub registered_at: DateTime<Utc>,
}

/// `GET /v1/runners`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerList {
    pub items: Vec<Runner>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The head of the feed before the first page: what changes after it is in the feed from here on.
    pub revision: i64,
}

/// Paging of `GET /v1/runners`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunnerListQuery {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// `PUT /v1/runners/{id}/drain`: stop or resume giving it work. Takes `If-Match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainRequest {
    pub draining: bool,
}
