//! `/v1/snapshot`

use api_kit::{Caller, Closing, Problem};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use kernel::id::OrganizationId;
use resource_catalog_api::SnapshotLine;

use crate::catalog::Catalog;
use crate::store::StoreError;
use crate::store::snapshot::{self, Part};
use crate::wire;

/// Gives every resource as lines of JSON, with the revision at which they were true. Whole only with its last line.
#[utoipa::path(
    get,
    path = "/v1/snapshot",
    tag = "events",
    responses((status = 200, description = "Lines of JSON: a head, the resources, an end", body = SnapshotLine,
        content_type = "application/x-ndjson"))
)]
pub async fn get_snapshot(
    State(catalog): State<Catalog>,
    caller: Caller,
    closing: Closing,
) -> Result<Response, Problem> {
    let turn = catalog.snapshot_turn().await?;
    let mut parts = Box::pin(snapshot::stream(catalog.database().clone(), caller.organization).peekable());
    // A database that does not answer is a problem, not a broken stream.
    if let Some(Err(_)) = parts.as_mut().peek().await
        && let Some(Err(error)) = parts.next().await
    {
        return Err(error.into());
    }
    let organization = caller.organization;
    let lines = async_stream::stream! {
        let mut resources = 0_u64;
        while let Some(part) = parts.next().await {
            if matches!(part, Ok(Part::Resource(_))) {
                resources += 1;
            }
            yield part.and_then(|part| line(part, organization));
        }
        drop(turn);
        yield text(&SnapshotLine::End { resources });
    };
    // The first fault ends the body without its last line.
    let body = lines.take_until(async move { closing.closed().await });
    let mut response = Body::from_stream(body).into_response();
    let kind = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

fn line(part: Part, organization_id: OrganizationId) -> Result<String, StoreError> {
    text(&match part {
        Part::Head(revision) => SnapshotLine::Head {
            revision,
            organization_id,
        },
        Part::Resource(resource) => SnapshotLine::Resource {
            resource: Box::new(wire::resource::resource(&resource)),
        },
    })
}

fn text(line: &SnapshotLine) -> Result<String, StoreError> {
    let mut text = serde_json::to_string(line).map_err(|e| StoreError::unreadable("resource", e))?;
    text.push('\n');
    Ok(text)
}
