use std::sync::Arc;

use api_kit::{Caller, FieldError, Problem, StrictJson, Tell, parse_json};
use axum::Json;
use axum::extract::State as Shared;
use contracts::JobSpec;
use execution_plane_api::{AttemptBatch, AttemptBatchOutcome, AttemptOutcome, SubmissionOutcome, problem_codes};
use execution_plane_domain::attempt::State;
use execution_plane_domain::submission;
use kernel::Sha256Digest;
use kernel::id::AttemptId;
use serde::Deserialize;
use serde_json::Value;

use super::{access, problems, wire};
use crate::core::Core;
use crate::store::submit::{Submission, Submitted};

const MOST: usize = 256;

/// The batch with its items not yet read: one malformed item refuses itself alone.
#[derive(Debug, Deserialize)]
pub struct RawBatch {
    attempts: Vec<Value>,
}

/// Submits attempts, each with an outcome of its own.
#[utoipa::path(post, path = "/v1/attempt-batches", tag = "attempts", request_body = AttemptBatch,
    responses((status = 200, body = AttemptBatchOutcome)))]
pub async fn submit_attempts(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictJson(batch): StrictJson<RawBatch>,
) -> Result<Json<AttemptBatchOutcome>, Problem> {
    access::control_plane(&caller)?;
    if batch.attempts.is_empty() || batch.attempts.len() > MOST {
        let detail = format!("1 to {MOST} attempts are expected");
        return Err(Problem::invalid([FieldError::new("/attempts", "invalid_size", detail)]));
    }
    let outcomes = batch.attempts.into_iter().map(|item| submit_one(&core, &caller, item));
    let outcomes = futures::future::try_join_all(outcomes).await?;
    // Each attempt has a fact of its own.
    caller.act.written();
    Ok(Json(AttemptBatchOutcome { outcomes }))
}

async fn submit_one(core: &Core, caller: &Caller, item: Value) -> Result<SubmissionOutcome, Problem> {
    let named = item
        .get("attempt_id")
        .and_then(Value::as_str)
        .and_then(|id| id.parse().ok());
    let submission = match read(core, caller, &item) {
        Ok(submission) => submission,
        Err(problem) => return Ok(refused(caller, named, problem)),
    };
    let id = Some(submission.checked.spec.attempt_id);
    let accepted = |outcome, state| SubmissionOutcome {
        attempt_id: id,
        outcome,
        state: Some(wire::state(state)),
        problem: None,
    };
    Ok(match core.submit(submission).await.map_err(problems::store)? {
        Submitted::Accepted(None) => accepted(AttemptOutcome::Accepted, State::Queued),
        Submitted::Accepted(Some(_)) => accepted(AttemptOutcome::Accepted, State::Leased),
        Submitted::Replayed(state) => {
            let tell = Tell::accepted().with("replayed", true);
            caller.act.note(about(tell, id));
            accepted(AttemptOutcome::Replayed, state)
        }
        Submitted::Refused(refusal) => refused(caller, id, problems::refusal(refusal)),
        Submitted::Conflict => SubmissionOutcome {
            outcome: AttemptOutcome::Conflict,
            ..refused(caller, id, conflict())
        },
    })
}

fn read(core: &Core, caller: &Caller, item: &Value) -> Result<Submission, Problem> {
    let spec: JobSpec = parse_json(item.to_string().as_bytes())?;
    let checked = submission::check(spec, caller.organization, &core.hot.config.secrets).map_err(problems::refusal)?;
    let bytes = kernel::canonical_bytes(&checked.spec)
        .map_err(|error| Problem::invalid([FieldError::new("", "invalid_value", error.to_string())]))?;
    let spec_sha256 = Sha256Digest::of(&bytes);
    let tell = about(Tell::accepted(), Some(checked.spec.attempt_id));
    let tell = tell.with("operation_id", checked.spec.operation_id.to_string());
    Ok(Submission {
        fact: caller.act.part(tell),
        organization: caller.organization,
        checked,
        spec_text: String::from_utf8_lossy(&bytes).into_owned(),
        spec_sha256,
    })
}

/// On which attempt, when it is known.
fn about(tell: Tell, attempt: Option<AttemptId>) -> Tell {
    match attempt {
        Some(id) => tell.on(format!("attempts/{id}")),
        None => tell,
    }
}

fn refused(caller: &Caller, attempt_id: Option<AttemptId>, problem: Problem) -> SubmissionOutcome {
    caller.act.note(about(Tell::refused(&problem.code), attempt_id));
    SubmissionOutcome {
        attempt_id,
        outcome: AttemptOutcome::Refused,
        state: None,
        problem: Some(problem),
    }
}

fn conflict() -> Problem {
    Problem::conflict(
        problem_codes::ATTEMPT_CONFLICT,
        "Another JobSpec was accepted under this attempt_id.",
    )
    .remedy("Choose a new attempt_id for a new attempt.")
}
