use api_kit::{Caller, Problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::RuntimeView;

use super::App;

/// What drives the operations of this deployment, and how it fares.
#[utoipa::path(get, path = "/v1/runtime", tag = "runtime", responses((status = 200, body = RuntimeView)))]
pub async fn get_runtime(caller: Caller, state: State<App>) -> Result<Json<RuntimeView>, Problem> {
    tracing::trace!(%caller.organization, "the runtime's status is read");
    let status = state.engine.runtime().status();
    Ok(Json(RuntimeView {
        kind: status.kind,
        running: status.running,
        operations: status.operations,
        effects_in_flight: status.effects_in_flight,
        effects_waiting: status.effects_waiting,
        swept_at: status.swept_at,
    }))
}
