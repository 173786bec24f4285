//! The planning side of the service put together: packs, plans, and the copy of the catalog.

use std::sync::Arc;

use api_kit::{FieldError, Limit, OpenApiRouter, Problem, Rule, database_problem};
use control_plane_ports::EventSource;
use database::{Database, DatabaseError};
use identity::Role;
use kernel::id::OrganizationId;
use outbox::{Feed, Signal};
use sqlx::{Postgres, Transaction};

use crate::packs::delivery::Delivery;
use crate::packs::library::Library;
use crate::plans::planner::StoredPlanner;
use crate::projection::Projection;
use crate::service::{Config, PlanningSide, Worker};
use crate::{packs, plans, projection};

/// What the handlers of the planning side work with.
#[derive(Clone)]
pub struct PlanningApp {
    /// The api role's database.
    pub database: Database,
    pub library: Arc<Library>,
    pub delivery: Arc<Delivery>,
    pub projection: Arc<Projection>,
    pub planner: Arc<StoredPlanner>,
    /// For the head before a list; nobody here waits for news of it.
    pub feed: Feed,
}

impl PlanningApp {
    /// A transaction in which only the organization's rows are seen.
    pub(crate) async fn begin(&self, organization: OrganizationId) -> Result<Transaction<'static, Postgres>, Problem> {
        self.database
            .begin(organization)
            .await
            .map_err(|error| database_problem(&error))
    }
}

impl PlanningApp {
    /// The parts of the planning side. Nothing runs and nothing is connected yet.
    ///
    /// # Errors
    /// When the pools cannot be made.
    pub fn new(
        config: &Config,
        events: Arc<dyn EventSource>,
        execution: client_kit::Client,
    ) -> Result<Self, DatabaseError> {
        let api = Database::open(&config.database.api, "control-plane-planning", config.api_pool)?;
        let worker = Database::open(&config.database.worker, "control-plane-projection", config.worker_pool)?;
        let library = Arc::new(Library::default());
        let projection = Projection::new(worker.clone(), events);
        let planner = StoredPlanner::new(api.clone(), library.clone(), projection.clone());
        Ok(Self {
            feed: Feed::new(api.clone(), Signal::default()),
            database: api,
            library,
            delivery: Delivery::new(worker, execution),
            projection,
            planner: Arc::new(planner),
        })
    }
}

/// Puts the planning side together. Nothing runs and nothing is connected yet. `organizations` are
/// followed from the beginning; others from their first pack or plan on.
///
/// # Errors
/// When the pools cannot be made.
pub fn side(
    config: &Config,
    events: Arc<dyn EventSource>,
    execution: client_kit::Client,
    organizations: Vec<OrganizationId>,
) -> Result<PlanningSide, DatabaseError> {
    let app = PlanningApp::new(config, events, execution)?;
    let (delivery, projection) = (app.delivery.clone(), app.projection.clone());
    let workers: Vec<Worker> = vec![
        Box::new(move |shutdown| Box::pin(delivery.run(shutdown))),
        Box::new(move |shutdown| Box::pin(projection.run(organizations, shutdown))),
    ];
    Ok(PlanningSide {
        planner: app.planner.clone(),
        routes: routes().with_state(app),
        rules: rules(),
        workers,
    })
}

/// The routes of the planning side.
pub fn routes() -> OpenApiRouter<PlanningApp> {
    packs::routes().merge(plans::routes()).merge(projection::routes())
}

const READERS: &[Role] = &[Role::Viewer, Role::Operator, Role::Approver, Role::Admin, Role::Service];
const MAKERS: &[Role] = &[Role::Operator, Role::Admin];

/// Who may call them.
#[must_use]
pub fn rules() -> Vec<Rule> {
    vec![
        Rule::new("POST", "/v1/packs", MAKERS)
            .audited("pack.publish")
            .body_limit(packs::MAX_ARCHIVE)
            .refuses(&[409]),
        Rule::new("POST", "/v1/packs/validate", READERS)
            .audited_when_refused("pack.validate", "nothing is kept or changed")
            .body_limit(packs::MAX_ARCHIVE),
        Rule::new("GET", "/v1/packs", READERS),
        Rule::new("GET", "/v1/packs/{name}/{version}", READERS),
        Rule::new("POST", "/v1/plans", READERS)
            .audited("plan.make")
            .idempotency_key()
            .refuses(&[404, 409]),
        Rule::new("GET", "/v1/plans/{id}", READERS),
        Rule::new("GET", "/v1/projections", READERS),
        Rule::new("POST", "/v1/projections/{name}/rebuild", MAKERS)
            .audited("projection.rebuild")
            .idempotency_key(),
    ]
}

/// How many items a page has: a number outside 1 to 1,000 is refused, not bent.
pub(crate) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked {
        None => Ok(Limit::default().get()),
        Some(limit) if (1..=Limit::MAX).contains(&limit) => Ok(limit),
        Some(limit) => Err(Problem::invalid([FieldError::new(
            "/limit",
            "invalid",
            format!("{limit} is not a number from 1 to {}", Limit::MAX),
        )])),
    }
}
