//! `/healthz` (the process lives) and `/readyz` (what it depends on answers).

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use futures::future::{BoxFuture, join_all};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Problem;

/// How long a dependency may take to show that it lives.
const PATIENCE: Duration = Duration::from_secs(2);

type Probe = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The dependencies of a service, each asked by name.
#[derive(Clone, Default)]
pub struct Health {
    probes: Vec<(&'static str, Probe)>,
}

impl Health {
    /// Adds a dependency. `probe` answers fast; its error text is shown to anyone, so it holds no
    /// address, path or secret.
    #[must_use]
    pub fn dependency<F>(mut self, name: &'static str, probe: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.probes.push((name, Arc::new(move || Box::pin(probe()))));
        self
    }

    /// Adds a database, under its name.
    #[must_use]
    pub fn database(self, name: &'static str, database: &database::Database) -> Self {
        let database = database.clone();
        self.dependency(name, move || {
            let database = database.clone();
            async move { database.ping().await.map_err(|_| "does not answer".to_owned()) }
        })
    }

    async fn ask(&self) -> Vec<Check> {
        let asked = self.probes.iter().map(|(name, probe)| async move {
            let outcome = tokio::time::timeout(PATIENCE, probe()).await;
            let fault = match outcome {
                Ok(answer) => answer.err(),
                Err(_) => Some("does not answer in time".to_owned()),
            };
            Check {
                name: (*name).to_owned(),
                ok: fault.is_none(),
                detail: fault,
            }
        });
        join_all(asked).await
    }
}

/// How one dependency is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Check {
    /// Which.
    pub name: String,
    /// Whether it serves.
    pub ok: bool,
    /// What ails it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A sign of life.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Alive {
    /// Always `ok`.
    status: &'static str,
}

/// Whether the service can do its work.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// Always `ready`; else the answer is a problem.
    status: &'static str,
    /// Each dependency.
    checks: Vec<Check>,
}

/// Tells that the process lives.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Alive)))]
pub(crate) async fn healthz() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// Tells whether the service can do its work, or which dependency ails.
#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, body = Readiness)))]
pub(crate) async fn readyz(State(health): State<Health>) -> Result<Json<Readiness>, Problem> {
    let checks = health.ask().await;
    let ailing: Vec<&str> = checks.iter().filter(|c| !c.ok).map(|c| c.name.as_str()).collect();
    if ailing.is_empty() {
        return Ok(Json(Readiness {
            status: "ready",
            checks,
        }));
    }
    let problem = Problem::new(503, "not_ready", "The service is not ready")
        .detail(format!("Not available: {}.", ailing.join(", ")))
        .retry_after(1);
    // Plain structures: always JSON.
    Err(problem.with("checks", serde_json::to_value(&checks).unwrap_or_default()))
}
