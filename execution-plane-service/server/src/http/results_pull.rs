use std::sync::Arc;

use api_kit::{Caller, Closing, FieldError, Problem, StrictJson};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::{ResultsPullRequest, ResultsPullResponse};
use tokio::time::Instant;

use super::{access, problems, waiting};
use crate::core::Core;
use crate::dispatch::signals::woken;
use crate::store::{results, running};

const MOST: usize = 1000;

/// Acknowledges results and waits for the next ones.
#[utoipa::path(post, path = "/v1/results/pull", tag = "results", request_body = ResultsPullRequest,
    responses((status = 200, body = ResultsPullResponse)))]
pub async fn pull_results(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    closing: Closing,
    StrictJson(request): StrictJson<ResultsPullRequest>,
) -> Result<Json<ResultsPullResponse>, Problem> {
    access::control_plane(&caller)?;
    check(&request)?;
    let wait = waiting::wait(request.wait_seconds)?;
    let organization = caller.organization;
    let mut signal = core.hot.results.subscribe(organization);
    if !request.ack.is_empty() {
        let acknowledged = results::acknowledge(&core.hot.api, organization, &request.ack).await;
        acknowledged.map_err(problems::store)?;
    }
    let deadline = Instant::now() + wait;
    loop {
        let found = results::pull(&core.hot.api, organization, request.limit).await;
        let results = found.map_err(problems::store)?;
        let running = match &request.running {
            Some(asked) => {
                let running = running::running(&core.hot.api, organization, asked.after, &asked.known).await;
                Some(running.map_err(problems::store)?)
            }
            None => None,
        };
        let news = !results.is_empty() || running.as_ref().is_some_and(|running| !running.attempts.is_empty());
        if news || !woken(&mut signal, deadline, &closing).await {
            return Ok(Json(ResultsPullResponse { results, running }));
        }
    }
}

fn check(request: &ResultsPullRequest) -> Result<(), Problem> {
    let mut errors = Vec::new();
    if request.ack.len() > MOST {
        errors.push(FieldError::new("/ack", "too_many", format!("at most {MOST} at once")));
    }
    if request.running.as_ref().is_some_and(|asked| asked.known.len() > MOST) {
        let detail = format!("at most {MOST} at once");
        errors.push(FieldError::new("/running/known", "too_many", detail));
    }
    if request.limit == 0 || request.limit as usize > MOST {
        errors.push(FieldError::new("/limit", "invalid_value", format!("1 to {MOST}")));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(errors))
    }
}
