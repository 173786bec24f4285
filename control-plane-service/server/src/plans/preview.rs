use api_kit::{
    Caller, Claim, IdempotentJson, Problem, StoredResponse, StrictQuery, Tell, database_problem, idempotency_sqlx,
};
use axum::extract::State;
use control_plane_api::{PlanRequest, PlanView, PreviewQuery};
use kernel::id::PlanId;

use super::make::{foretell, make};
use super::planner::of_store;
use super::store::{self, NewPlan};
use crate::planning::PlanningApp;
use crate::points;
use crate::projection::wait;

/// Plans without starting anything, and keeps the plan. Asks no other service.
#[utoipa::path(post, path = "/v1/plans", tag = "plans", params(PreviewQuery), request_body = PlanRequest,
    responses((status = 201, body = PlanView, headers(("Location" = String)))))]
pub async fn preview_plan(
    caller: Caller,
    app: State<PlanningApp>,
    query: StrictQuery<PreviewQuery>,
    preview: IdempotentJson<PlanRequest>,
) -> Result<StoredResponse, Problem> {
    let StrictQuery(query) = query;
    let IdempotentJson { body, request } = preview;
    let organization = caller.organization;
    app.projection.follow(organization).await;
    if let Some(wanted) = query.wait_for.as_deref().map(wait::parse).transpose()? {
        app.projection.wait_for(&app.database, organization, &wanted).await?;
    }
    let mut tx = app.begin(organization).await?;
    if let Claim::Replay(stored) = idempotency_sqlx::claim(&mut tx, organization, &request).await? {
        return Ok(stored);
    }
    let mut made = make(&mut tx, &app.library, organization, &body).await?;
    foretell(&mut tx, &mut made).await?;
    let id = PlanId::new_v7();
    let plan = NewPlan {
        id,
        scenario: &made.scenario,
        environment: &body.environment,
        document: made.document.as_ref(),
        advice: &made.advice,
        subject: &caller.subject,
    };
    let created_at = store::insert(&mut tx, organization, &plan).await.map_err(of_store)?;
    let view = PlanView {
        id,
        created_at,
        created_by: caller.subject.clone(),
        satisfiable: made.document.is_some(),
        digest: made.document.as_ref().map(|document| document.digest()),
        plan: made.document.map(|document| document.plan().clone()),
        advice: made.advice,
        operation_id: None,
    };
    let response = StoredResponse::json(201, &view)?.location(format!("/v1/plans/{id}"));
    idempotency_sqlx::store(&mut tx, organization, &request, &response).await?;
    let recorded = caller
        .act
        .record_sqlx(&mut tx, Tell::accepted().on(format!("plans/{id}")))
        .await;
    recorded.map_err(|error| database_problem(&error))?;
    points::hit("control_plane.preview.before_commit");
    tx.commit().await.map_err(|error| database_problem(&error.into()))?;
    points::hit("control_plane.preview.after_commit");
    Ok(response)
}
