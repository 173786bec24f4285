//! A pack archive as it comes in.

use api_kit::{FieldError, Problem, internal_problem};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use control_plane_api::PACK_MEDIA_TYPE;
use control_plane_scenario::{Bundle, BundleError, Fault, MAX_PACK_BYTES, Pack};

use super::view;

/// Largest archive: the largest pack with room for a tar archive's headers and padding.
pub const MAX_ARCHIVE: usize = (MAX_PACK_BYTES as usize) + (16 << 20);

/// The bytes of a request that says it is a tar archive.
pub async fn archive(request: Request<Body>) -> Result<Bytes, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !matches!(
        kind,
        Some(PACK_MEDIA_TYPE | "application/tar" | "application/octet-stream")
    ) {
        return Err(
            Problem::new(415, "unsupported_media_type", "The body is not a pack archive")
                .detail(format!("This takes `Content-Type: {PACK_MEDIA_TYPE}`.")),
        );
    }
    to_bytes(request.into_body(), MAX_ARCHIVE)
        .await
        .map_err(|_| Problem::new(413, "body_too_large", "The request body is too large or ended early"))
}

/// The pack, or its faults. Reading costs CPU, not time of others: it runs beside the async threads.
pub async fn read(archive: Bytes) -> Result<(Bundle, Result<Pack, Vec<Fault>>), Problem> {
    let read = tokio::task::spawn_blocking(move || {
        let bundle = Bundle::from_tar(&archive)?;
        let pack = Pack::read(&bundle);
        Ok::<_, BundleError>((bundle, pack))
    });
    match read.await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(not_an_archive(&error)),
        Err(error) => Err(internal_problem(&error)),
    }
}

fn not_an_archive(error: &BundleError) -> Problem {
    let (status, code) = match error {
        BundleError::TooLarge | BundleError::TooManyFiles | BundleError::FileTooLarge { .. } => (413, "pack_too_large"),
        _ => (422, "invalid_archive"),
    };
    Problem::new(status, code, "The archive is no pack")
        .detail(format!("{error}."))
        .remedy("Send a plain tar archive of the pack's directory: files only, pack.yaml at its top.")
}

/// 422 with every fault, each with its place.
pub fn invalid(faults: Vec<Fault>) -> Problem {
    let errors = faults.iter().map(|fault| {
        let place = format!("/{}:{}:{}", fault.file, fault.at.line, fault.at.column);
        FieldError::new(
            place,
            fault.code.as_str(),
            format!("{}; {}", fault.message, fault.remedy),
        )
    });
    let count = faults.len();
    let problem = Problem::new(422, "invalid_pack", "The pack is not valid")
        .detail(format!("It has {count} faults."))
        .errors(errors.collect::<Vec<_>>());
    let views: Vec<_> = faults.into_iter().map(view::fault).collect();
    match serde_json::to_value(views) {
        Ok(views) => problem.with("faults", views),
        Err(_) => problem,
    }
}
