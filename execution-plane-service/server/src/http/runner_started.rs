use std::sync::Arc;

use api_kit::{Problem, StrictJson, StrictPath};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::{StartPhase, StartedRequest, StartedResponse, problem_codes};
use execution_plane_domain::attempt::Phase;
use kernel::id::AttemptId;

use super::runner_identity::RunnerIdentity;
use super::{problems, wire};
use crate::core::Core;
use crate::store::started::{self, Refused};

/// Tells that a job is being started, or runs.
#[utoipa::path(post, path = "/v1/runner/attempts/{attempt_id}/started", tag = "runner protocol",
    params(("attempt_id" = AttemptId, Path)), request_body = StartedRequest,
    responses((status = 200, body = StartedResponse)))]
pub async fn report_started(
    Shared(core): Shared<Arc<Core>>,
    runner: RunnerIdentity,
    StrictPath(attempt_id): StrictPath<AttemptId>,
    StrictJson(request): StrictJson<StartedRequest>,
) -> Result<Json<StartedResponse>, Problem> {
    let phase = match request.phase {
        StartPhase::Starting => Phase::Starting,
        StartPhase::Running => Phase::Running,
    };
    let reporter = runner.reporter(attempt_id, request.epoch);
    let started = started::started(&core.hot.api, reporter, phase, request.isolation_used).await;
    match started.map_err(problems::store)? {
        Ok(state) => {
            core.hot.outbox.wake();
            Ok(Json(StartedResponse {
                state: wire::state(state),
            }))
        }
        Err(Refused::Fenced(fenced)) => Err(problems::fenced(fenced, attempt_id)),
        Err(Refused::TooWeak { asked }) => {
            let title = "The isolation is weaker than asked";
            Err(Problem::new(422, problem_codes::ISOLATION_TOO_WEAK, title)
                .detail(format!("The job asks for at least {asked:?} isolation."))
                .remedy("End the job and report it failed."))
        }
    }
}
