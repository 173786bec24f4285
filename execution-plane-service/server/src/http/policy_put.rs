use std::sync::Arc;

use api_kit::{Caller, ETag, FieldError, IfMatch, Problem, StrictJson, StrictPath, Tell, internal_problem};
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use execution_plane_api::{CommandPolicy, CommandPolicyBody, problem_codes};
use execution_plane_domain::policy;
use execution_plane_domain::submission::is_policy_name;

use super::{problems, wire};
use crate::core::Core;
use crate::store::policies::{self, Put};

/// Stores the next version of a command policy. The first one takes no `If-Match`, every further one
/// the version that it follows.
#[utoipa::path(put, path = "/v1/command-policies/{name}", tag = "command policies", params(("name" = String, Path)),
    request_body = CommandPolicyBody,
    responses((status = 201, body = CommandPolicy), (status = 200, body = CommandPolicy)))]
pub async fn put_command_policy(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    StrictPath(name): StrictPath<String>,
    if_match: IfMatch,
    StrictJson(body): StrictJson<CommandPolicyBody>,
) -> Result<(StatusCode, ETag, Json<CommandPolicy>), Problem> {
    if !is_policy_name(&name) {
        let detail = "a name of letters, digits, '-', '_' and '.', at most 200, is expected";
        return Err(Problem::invalid([FieldError::new("/name", "invalid_value", detail)]));
    }
    let body = serde_json::to_value(&body).map_err(|error| internal_problem(&error))?;
    policy::CommandPolicy::parse(&body).map_err(|faults| {
        Problem::new(
            422,
            problem_codes::INVALID_COMMAND_POLICY,
            "The command policy is not valid",
        )
        .errors(problems::field_errors(faults))
    })?;
    let expected = if_match.version().and_then(|version| u64::try_from(version).ok());
    let fact = caller.act.fact(Tell::accepted());
    let put = policies::put(&core.hot.api, caller.organization, &name, expected, &body, fact).await;
    let (status, stored) = match put.map_err(problems::store)? {
        Put::Stored(stored) => {
            caller.act.written();
            (StatusCode::CREATED, stored)
        }
        Put::Same(stored) => (StatusCode::OK, stored),
        Put::Moved { current } => {
            let current = i64::try_from(current).unwrap_or(i64::MAX);
            return Err(Problem::version_mismatch(
                format_args!("command policy {name}"),
                current,
            ));
        }
    };
    let version = i64::try_from(stored.version).unwrap_or(i64::MAX);
    Ok((status, ETag(version), Json(wire::policy(stored))))
}
