use std::sync::Arc;

use api_kit::{Caller, FieldError, Problem, StrictPath, StrictQuery, Tell};
use axum::Json;
use axum::body::Body;
use axum::extract::State as Shared;
use contracts::{ArtifactRef, Sensitivity};
use execution_plane_api::{ArtifactUploadQuery, problem_codes};
use execution_plane_domain::submission::is_artifact_name;
use futures::{StreamExt, TryStreamExt};
use kernel::id::AttemptId;
use uuid::Uuid;

use super::problems;
use super::runner_identity::RunnerIdentity;
use crate::core::Core;
use crate::store::artifacts::{self, NewArtifact, Recorded};
use crate::store::report;

/// Uploads an artifact, verified against its digest.
#[utoipa::path(put, path = "/v1/runner/attempts/{attempt_id}/artifacts/{name}", tag = "runner protocol",
    params(("attempt_id" = AttemptId, Path), ("name" = String, Path), ArtifactUploadQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = ArtifactRef)))]
pub async fn upload_artifact(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    runner: RunnerIdentity,
    StrictPath((attempt_id, name)): StrictPath<(AttemptId, String)>,
    StrictQuery(query): StrictQuery<ArtifactUploadQuery>,
    body: Body,
) -> Result<Json<ArtifactRef>, Problem> {
    check(&name, &query)?;
    let hot = &core.hot;
    let reporter = runner.reporter(attempt_id, query.epoch);
    // Before the bytes: what will not be taken is not stored.
    let fence = report::check(&hot.api, reporter).await.map_err(problems::store)?;
    fence.map_err(|fenced| problems::fenced(fenced, attempt_id))?;
    let body = body.into_data_stream().map_err(std::io::Error::other).boxed();
    let limit = hot.config.max_artifact_bytes;
    failpoints::hit("execution_plane.artifact_blob.before_write");
    let stored = hot
        .blobs
        .put(runner.organization, Some(query.sha256), limit, body)
        .await;
    failpoints::hit("execution_plane.artifact_blob.after_write");
    let new = NewArtifact {
        id: Uuid::now_v7(),
        name,
        artifact_type: query.artifact_type,
        sensitivity: query.sensitivity,
        sha256: query.sha256,
        size_bytes: stored.map_err(problems::blob)?.size_bytes,
        media_type: query.media_type,
    };
    let fact = caller.act.fact(Tell::accepted().with("sha256", query.sha256.to_hex()));
    let recorded = artifacts::record(&hot.api, reporter, new, fact).await;
    match recorded.map_err(problems::store)? {
        Recorded::Stored(artifact) => Ok(Json(*artifact)),
        Recorded::Fenced(fenced) => Err(problems::fenced(fenced, attempt_id)),
        Recorded::Conflict => Err(Problem::conflict(
            problem_codes::ARTIFACT_CONFLICT,
            "Another artifact was uploaded under this name.",
        )),
    }
}

fn check(name: &str, query: &ArtifactUploadQuery) -> Result<(), Problem> {
    if query.sensitivity == Sensitivity::Secret {
        let title = "Secret artifacts cannot be stored";
        return Err(Problem::new(422, problem_codes::SECRET_ARTIFACTS_UNAVAILABLE, title)
            .detail("A secret artifact is kept in a secret store, and this deployment has none that takes it.")
            .remedy("Let the job keep it, or hand it over by a secret reference."));
    }
    let mut errors = Vec::new();
    if !is_artifact_name(name) {
        let detail = "letters, digits, '-', '_' and '.', not starting with '.' or '-', at most 200";
        errors.push(FieldError::new("/name", "invalid_value", detail));
    }
    let texts = [Some(&query.artifact_type), query.media_type.as_ref()];
    if texts
        .into_iter()
        .flatten()
        .any(|text| text.is_empty() || text.len() > 200)
    {
        let detail = "type and media_type have 1 to 200 bytes";
        errors.push(FieldError::new("/type", "invalid_value", detail));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(errors))
    }
}
