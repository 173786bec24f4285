use std::sync::Arc;

use api_kit::{Caller, Problem, StrictPath};
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use execution_plane_ports::BlobKey;
use kernel::Sha256Digest;
use kernel::id::OrganizationId;

use super::problems;
use crate::core::Core;
use crate::store::contents;

/// The bytes of a content bundle that the organization uploaded.
#[utoipa::path(get, path = "/v1/contents/{sha256}", tag = "contents", params(("sha256" = Sha256Digest, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
pub async fn get_content(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(sha256): StrictPath<Sha256Digest>,
) -> Result<Response, Problem> {
    let known = contents::size(&core.hot.api, caller.organization, sha256).await;
    if known.map_err(problems::store)?.is_none() {
        return Err(Problem::not_found(format_args!("content {sha256}")));
    }
    blob(&core, caller.organization, sha256).await
}

/// A blob as a response, in pieces.
pub async fn blob(core: &Core, organization: OrganizationId, sha256: Sha256Digest) -> Result<Response, Problem> {
    let key = BlobKey { organization, sha256 };
    let read = core.hot.blobs.get(key, None).await.map_err(problems::blob)?;
    let mut response = Body::from_stream(read.body).into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(read.size_bytes));
    Ok(response)
}
