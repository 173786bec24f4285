use std::sync::Arc;

use api_kit::{Caller, FieldError, Problem, StrictJson, StrictPath, Tell, internal_problem};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::{FinishRequest, FinishResponse, problem_codes};
use kernel::Sha256Digest;
use kernel::id::AttemptId;

use super::runner_identity::RunnerIdentity;
use super::{problems, wire};
use crate::core::Core;
use crate::store::finish::{Finished, Report};

/// Reports the end of an attempt, once.
#[utoipa::path(post, path = "/v1/runner/attempts/{attempt_id}/finish", tag = "runner protocol",
    params(("attempt_id" = AttemptId, Path)), request_body = FinishRequest,
    responses((status = 200, body = FinishResponse)))]
pub async fn finish_attempt(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    runner: RunnerIdentity,
    StrictPath(attempt_id): StrictPath<AttemptId>,
    StrictJson(request): StrictJson<FinishRequest>,
) -> Result<Json<FinishResponse>, Problem> {
    check(attempt_id, &request)?;
    let bytes = serde_json::to_vec(&request).map_err(|error| internal_problem(&error))?;
    let log = if request.last_output_sequence > 0 {
        core.hot
            .bundle(runner.organization, attempt_id)
            .await
            .map_err(problems::store)?
    } else {
        None
    };
    let report = Report {
        reporter: runner.reporter(attempt_id, request.epoch),
        last_output_sequence: request.last_output_sequence,
        result: request.result,
        sha256: Sha256Digest::of(&bytes),
        log: log.map(|(log, _)| log),
        fact: caller.act.fact(Tell::accepted()),
    };
    match core.finish(report).await.map_err(problems::store)? {
        Finished::Ended {
            state,
            result,
            replayed,
        } => {
            if !replayed {
                caller.act.written();
            }
            Ok(Json(FinishResponse {
                state: wire::state(state),
                result: *result,
            }))
        }
        Finished::Fenced(fenced) => Err(problems::fenced(fenced, attempt_id)),
        Finished::Foreign => Err(foreign()),
        Finished::OutputIncomplete { expected_sequence } => Err(incomplete(expected_sequence)),
        Finished::OutputBeyond { last_sequence } => Err(beyond(last_sequence)),
    }
}

/// A bundle is made before the attempt is locked, and only for whom it belongs to.
fn check(attempt_id: AttemptId, request: &FinishRequest) -> Result<(), Problem> {
    let mut errors = Vec::new();
    if request.result.attempt_id != attempt_id {
        let detail = "another attempt than the path names";
        errors.push(FieldError::new("/result/attempt_id", "invalid_value", detail));
    }
    for (pointer, is_empty) in [
        ("/result/artifacts", request.result.artifacts.is_empty()),
        ("/result/raw_logs", request.result.raw_logs.is_empty()),
    ] {
        if !is_empty {
            let detail = "filled in by the service from what it stored; leave it empty";
            errors.push(FieldError::new(pointer, "not_allowed", detail));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(errors))
    }
}

fn foreign() -> Problem {
    let detail = "another operation or node than the attempt's";
    Problem::invalid([FieldError::new("/result/operation_id", "invalid_value", detail)])
}

fn incomplete(expected_sequence: u64) -> Problem {
    let detail = format!("Chunk {expected_sequence} of the output is not durable yet.");
    Problem::conflict(problem_codes::OUTPUT_INCOMPLETE, detail)
        .remedy("Send the output from that chunk on, then report the end again.")
        .with("expected_sequence", expected_sequence)
}

fn beyond(last_sequence: u64) -> Problem {
    let detail = format!("Output up to chunk {last_sequence} is durable, more than the report names.");
    Problem::conflict(problem_codes::OUTPUT_MISMATCH, detail)
        .remedy("Report the end with the last sequence that was sent.")
        .with("last_sequence", last_sequence)
}
