use api_kit::{
    Caller, Claim, FieldError, IdempotentJson, Problem, StoredResponse, StrictPath, Tell, database_problem,
    idempotency_sqlx,
};
use axum::extract::State;
use control_plane_api::{ProjectionView, RebuildRequest};

use super::{list, store};
use crate::planning::PlanningApp;
use crate::points;

const MAX_REASON: usize = 500;

/// Has a copy made anew from a snapshot of the catalog. It is read meanwhile as it was; what the snapshot lacks
/// goes at its end.
#[utoipa::path(post, path = "/v1/projections/{name}/rebuild", tag = "projections", params(("name" = String, Path)),
    request_body = RebuildRequest, responses((status = 202, body = ProjectionView)))]
pub async fn rebuild_projection(
    caller: Caller,
    app: State<PlanningApp>,
    name: StrictPath<String>,
    rebuild: IdempotentJson<RebuildRequest>,
) -> Result<StoredResponse, Problem> {
    let (StrictPath(name), IdempotentJson { body, request }) = (name, rebuild);
    let organization = caller.organization;
    if body.reason.chars().count() > MAX_REASON {
        let detail = format!("at most {MAX_REASON} characters");
        return Err(Problem::invalid([FieldError::new("/reason", "too_long", detail)]));
    }
    let missing = || Problem::not_found(format_args!("projection {name}"));
    if name != list::CATALOG {
        return Err(missing());
    }
    let fault = |error: sqlx::Error| database_problem(&error.into());
    let mut tx = app.begin(organization).await?;
    if let Claim::Replay(stored) = idempotency_sqlx::claim(&mut tx, organization, &request).await? {
        return Ok(stored);
    }
    store::want_rebuild(&mut tx, organization).await.map_err(fault)?;
    let view = list::view(&mut tx, organization).await.map_err(fault)?;
    // What nobody follows yet is no copy.
    let response = StoredResponse::json(202, &view.ok_or_else(missing)?)?;
    idempotency_sqlx::store(&mut tx, organization, &request, &response).await?;
    let tell = Tell::accepted().because(body.reason.as_str());
    let recorded = caller.act.record_sqlx(&mut tx, tell).await;
    recorded.map_err(|error| database_problem(&error))?;
    points::hit("control_plane.rebuild_asked.before_commit");
    tx.commit().await.map_err(fault)?;
    points::hit("control_plane.rebuild_asked.after_commit");
    tracing::info!(%organization, by = caller.subject, reason = body.reason, "the copy of the catalog is to be rebuilt");
    app.projection.rebuild_wanted();
    Ok(response)
}
