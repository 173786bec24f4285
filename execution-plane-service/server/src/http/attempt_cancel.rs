use std::sync::Arc;

use api_kit::{Caller, Problem, StrictJson, StrictPath, Tell};
use axum::Json;
use axum::extract::State as Shared;
use contracts::ExitReason;
use execution_plane_api::{Attempt, CancelRequest};
use kernel::id::AttemptId;

use super::{access, attempt_get, problems};
use crate::core::Core;
use crate::store::cancel::Cancelled;

/// Asks for an attempt's end. A queued one is cancelled at once; a held one when its runner has
/// ended the job.
#[utoipa::path(post, path = "/v1/attempts/{attempt_id}/cancel", tag = "attempts",
    params(("attempt_id" = AttemptId, Path)), request_body = CancelRequest,
    responses((status = 200, body = Attempt)))]
pub async fn cancel_attempt(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(attempt_id): StrictPath<AttemptId>,
    StrictJson(request): StrictJson<CancelRequest>,
) -> Result<Json<Attempt>, Problem> {
    access::control_plane(&caller)?;
    let reason = request.reason.unwrap_or(ExitReason::Person);
    let fact = caller.act.fact(Tell::accepted());
    let cancelled = core.hot.cancel(caller.organization, attempt_id, reason, fact).await;
    match cancelled.map_err(problems::store)? {
        Cancelled::Unknown => return Err(problems::no_attempt(attempt_id)),
        Cancelled::Unchanged => {}
        Cancelled::AtOnce | Cancelled::Requested(_) => caller.act.written(),
    }
    attempt_get::read(&core, caller.organization, attempt_id)
        .await
        .map(Json)
}
