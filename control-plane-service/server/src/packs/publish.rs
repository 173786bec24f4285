use api_kit::{Caller, Problem, StoredResponse, Tell, database_problem, internal_problem};
use axum::body::Body;
use axum::extract::{Request, State};
use control_plane_api::PackView;

use super::{intake, store, view};
use crate::planning::PlanningApp;
use crate::points;

/// Publishes a pack version. The same files again are the same version: the first outcome is given again.
#[utoipa::path(post, path = "/v1/packs", tag = "packs",
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses((status = 201, body = PackView, headers(("Location" = String))), (status = 200, body = PackView)))]
pub async fn publish_pack(
    caller: Caller,
    app: State<PlanningApp>,
    request: Request<Body>,
) -> Result<StoredResponse, Problem> {
    let archive = intake::archive(request).await?;
    let (bundle, pack) = intake::read(archive).await?;
    let pack = pack.map_err(intake::invalid)?;
    let archive = bundle.to_tar().map_err(|error| internal_problem(&error))?;
    let fault = |error: sqlx::Error| database_problem(&error.into());
    let mut tx = app.begin(caller.organization).await?;
    let is_new = store::insert(&mut tx, caller.organization, &pack, &archive, &caller.subject)
        .await
        .map_err(fault)?;
    let version = pack.version.to_string();
    let row = store::find(&mut tx, &pack.name, &version).await.map_err(fault)?;
    let row = row.ok_or_else(Problem::internal)?;
    if row.digest != pack.digest {
        return Err(Problem::conflict(
            "pack_version_exists",
            format!("{} {version} is published with other files.", pack.name),
        )
        .remedy("Published versions never change: give the pack a new version.")
        .with("published_digest", row.digest.to_hex()));
    }
    let tell = Tell::accepted().on(format!("packs/{}/{version}", pack.name));
    let recorded = caller
        .act
        .record_sqlx(&mut tx, tell.with("digest", pack.digest.to_hex()))
        .await;
    recorded.map_err(|error| database_problem(&error))?;
    points::hit("control_plane.publish.before_commit");
    tx.commit().await.map_err(fault)?;
    points::hit("control_plane.publish.after_commit");
    app.library.keep(pack);
    app.delivery.wake();
    app.projection.follow(caller.organization).await;
    let location = format!("/v1/packs/{}/{version}", row.name);
    let response = StoredResponse::json(if is_new { 201 } else { 200 }, &view::view(row))?;
    Ok(response.location(location))
}
