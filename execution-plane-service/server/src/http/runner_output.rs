use std::sync::Arc;

use api_kit::{FieldError, Problem, StrictJson, StrictPath};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::{OutputAcknowledged, OutputUploadRequest};
use kernel::id::AttemptId;

use super::runner_identity::RunnerIdentity;
use super::{problems, wire};
use crate::core::Core;
use crate::store::output_append::{self, Chunk};

const MOST_CHUNKS: usize = 4096;
const MOST_BYTES: usize = 256 * 1024;

/// Appends output, in order and without holes.
#[utoipa::path(post, path = "/v1/runner/attempts/{attempt_id}/output", tag = "runner protocol",
    params(("attempt_id" = AttemptId, Path)), request_body = OutputUploadRequest,
    responses((status = 200, body = OutputAcknowledged)))]
pub async fn append_output(
    Shared(core): Shared<Arc<Core>>,
    runner: RunnerIdentity,
    StrictPath(attempt_id): StrictPath<AttemptId>,
    StrictJson(request): StrictJson<OutputUploadRequest>,
) -> Result<Json<OutputAcknowledged>, Problem> {
    check(&request)?;
    let reporter = runner.reporter(attempt_id, request.epoch);
    let chunks: Vec<Chunk> = request.chunks.into_iter().map(wire::stored_chunk).collect();
    let limit = core.hot.config.max_output_bytes;
    let appended = output_append::append(&core.hot.api, reporter, &chunks, limit).await;
    match appended.map_err(problems::store)? {
        Ok(acknowledged_sequence) => {
            core.hot.outputs.notify(&(runner.organization, attempt_id));
            Ok(Json(OutputAcknowledged { acknowledged_sequence }))
        }
        Err(refused) => Err(problems::output(refused, attempt_id)),
    }
}

fn check(request: &OutputUploadRequest) -> Result<(), Problem> {
    let mut errors = Vec::new();
    if request.chunks.len() > MOST_CHUNKS {
        let detail = format!("at most {MOST_CHUNKS} chunks");
        errors.push(FieldError::new("/chunks", "too_many", detail));
    }
    for (index, chunk) in request.chunks.iter().enumerate() {
        if chunk.sequence == 0 {
            let pointer = format!("/chunks/{index}/sequence");
            errors.push(FieldError::new(pointer, "invalid_value", "sequences begin at 1"));
        }
        if chunk.data.len() > MOST_BYTES {
            let detail = format!("at most {MOST_BYTES} bytes");
            errors.push(FieldError::new(format!("/chunks/{index}/data"), "too_long", detail));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(errors))
    }
}
