//! `/v1/resource-updates`

use api_kit::{Caller, Problem, StrictJson};
use axum::Json;
use axum::extract::State;
use contracts::ResourceUpdateCommand;
use resource_catalog_api::UpdateOutcome;

use crate::catalog::Catalog;
use crate::resources::no_resource;
use crate::updates::Answer;
use crate::wire;

/// Applies what an operation made true of a resource, once and for ever by its command id.
///
/// 200 when applied or replayed; 409 `update_conflict` and 422 `update_rejected` carry the outcome as `update`; a
/// replay answers as the first time did. The same id with another body is 409 `command_id_reused`.
#[utoipa::path(
    post,
    path = "/v1/resource-updates",
    tag = "commands",
    request_body = ResourceUpdateCommand,
    responses((status = 200, description = "Applied, now or before", body = UpdateOutcome))
)]
pub async fn post_resource_update(
    State(catalog): State<Catalog>,
    caller: Caller,
    StrictJson(command): StrictJson<ResourceUpdateCommand>,
) -> Result<Json<UpdateOutcome>, Problem> {
    let resource_id = command.resource_id.clone();
    let command_id = command.command_id;
    let decided = catalog.updates().decide(&catalog, caller, command).await?;
    match decided {
        Answer::Outcome(outcome) => match wire::update::problem(&outcome) {
            None => Ok(Json(*outcome)),
            Some(problem) => Err(problem),
        },
        Answer::Reused => Err(Problem::conflict(
            "command_id_reused",
            format!("The command {command_id} came before with another body."),
        )
        .remedy("Use a new command_id for a new command.")),
        Answer::NoResource => Err(no_resource(&resource_id)),
    }
}
