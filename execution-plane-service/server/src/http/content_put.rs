use std::sync::Arc;

use api_kit::{Caller, Problem, StrictPath, Tell};
use axum::Json;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use execution_plane_api::ContentStored;
use futures::{StreamExt, TryStreamExt};
use kernel::Sha256Digest;

use super::problems;
use crate::core::Core;
use crate::store::contents;

/// Stores a content bundle, verified against the digest in the path.
#[utoipa::path(put, path = "/v1/contents/{sha256}", tag = "contents", params(("sha256" = Sha256Digest, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 201, body = ContentStored), (status = 200, body = ContentStored)))]
pub async fn put_content(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(sha256): StrictPath<Sha256Digest>,
    body: Body,
) -> Result<(StatusCode, Json<ContentStored>), Problem> {
    let hot = &core.hot;
    let body = body.into_data_stream().map_err(std::io::Error::other).boxed();
    let limit = hot.config.max_content_bytes;
    failpoints::hit("execution_plane.content_blob.before_write");
    let stored = hot.blobs.put(caller.organization, Some(sha256), limit, body).await;
    failpoints::hit("execution_plane.content_blob.after_write");
    let size_bytes = stored.map_err(problems::blob)?.size_bytes;
    let fact = caller.act.fact(Tell::accepted());
    let is_new = contents::record(&hot.api, caller.organization, sha256, size_bytes, fact).await;
    let is_new = is_new.map_err(problems::store)?;
    caller.act.written();
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(ContentStored { sha256, size_bytes })))
}
