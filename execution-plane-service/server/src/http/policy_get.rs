use std::sync::Arc;

use api_kit::{Caller, ETag, Problem, StrictPath};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::CommandPolicy;

use super::{problems, wire};
use crate::core::Core;
use crate::store::policies;

/// The newest version of a command policy.
#[utoipa::path(get, path = "/v1/command-policies/{name}", tag = "command policies", params(("name" = String, Path)),
    responses((status = 200, body = CommandPolicy)))]
pub async fn get_command_policy(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(name): StrictPath<String>,
) -> Result<(ETag, Json<CommandPolicy>), Problem> {
    let found = policies::newest(&core.hot.api, caller.organization, &name).await;
    let found = found.map_err(problems::store)?;
    let policy = found.ok_or_else(|| Problem::not_found("command policy of that name"))?;
    let version = i64::try_from(policy.version).unwrap_or(i64::MAX);
    Ok((ETag(version), Json(wire::policy(policy))))
}
