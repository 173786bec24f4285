use api_kit::{Caller, Problem};
use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use control_plane_api::PackValidation;

use super::{intake, view};

/// Finds every fault of a pack; nothing is kept.
#[utoipa::path(post, path = "/v1/packs/validate", tag = "packs",
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses((status = 200, body = PackValidation)))]
pub async fn validate_pack(_caller: Caller, request: Request<Body>) -> Result<Json<PackValidation>, Problem> {
    let archive = intake::archive(request).await?;
    let (_, pack) = intake::read(archive).await?;
    let faults = pack.err().unwrap_or_default();
    Ok(Json(PackValidation {
        valid: faults.is_empty(),
        faults: faults.into_iter().map(view::fault).collect(),
    }))
}
