use std::sync::Arc;

use api_kit::{Caller, FieldError, IdempotentJson, IfMatch, Problem, StoredResponse, StrictPath};
use axum::extract::State;
use control_plane_api::{Intervention, InterventionOutcome, InterventionRequest, Resolution as Wire};
use control_plane_operation::{CommandKind, PlanIndex, Resolution, RetrySelection};
use kernel::id::{OperationId, PlanId};
use serde_json::{Map, Value};

use crate::engine::Turn;
use crate::http::App;
use crate::http::command::{Asked, Commanding};
use crate::http::fault::{of_engine, of_store};
use crate::read;

const MAX_REASON: usize = 2_000;

/// Pauses, resumes, retries, skips, cancels or resolves. Applied once, in order; the answer is the operation
/// as it is with it, or a conflict.
#[utoipa::path(post, path = "/v1/operations/{operation_id}/interventions", tag = "operations",
    params(("operation_id" = OperationId, Path)), request_body = InterventionRequest,
    responses((status = 200, body = InterventionOutcome, headers(("ETag" = String)))))]
pub async fn intervene(
    caller: Caller,
    state: State<App>,
    path: StrictPath<OperationId>,
    if_match: IfMatch,
    intervention: IdempotentJson<InterventionRequest>,
) -> Result<StoredResponse, Problem> {
    let (StrictPath(operation), State(app)) = (path, state);
    let IdempotentJson { body, request } = intervention;
    check(&body)?;
    let commanding = Commanding {
        app: &app,
        caller: &caller,
        operation,
        request: &request,
    };
    let turn = match commanding.begin().await? {
        Ok(turn) => turn,
        Err(stored) => return Ok(stored),
    };
    let (kind, plan_id) = kind(&commanding, &turn, body.intervention).await?;
    let asked = Asked {
        kind,
        reason: body.reason,
        expected_version: match if_match {
            IfMatch::Version(version) => Some(version),
            IfMatch::Absent | IfMatch::Any => body.expected_version,
        },
        plan_id,
    };
    commanding
        .carry_out(turn, asked, async |turn: &Turn<'_>| {
            let operation = read::operation::find(turn.transaction(), operation)
                .await
                .map_err(of_store)?
                .ok_or_else(Problem::internal)?;
            let version = operation.summary.version;
            Ok((InterventionOutcome { operation }, version))
        })
        .await
}

async fn kind(
    commanding: &Commanding<'_>,
    turn: &Turn<'_>,
    intervention: Intervention,
) -> Result<(CommandKind, Option<PlanId>), Problem> {
    Ok(match intervention {
        Intervention::Pause => (CommandKind::Pause, None),
        Intervention::Resume => (CommandKind::Resume, None),
        Intervention::Cancel => (CommandKind::Cancel, None),
        Intervention::ForceCancel => (CommandKind::ForceCancel, None),
        Intervention::Skip { node_id } => (CommandKind::Skip { node: node_id }, None),
        Intervention::Resolve {
            node_id,
            resolution,
            evidence,
        } => {
            let resolution = match resolution {
                Wire::Succeeded => Resolution::Succeeded { evidence },
                Wire::Failed => Resolution::Failed,
            };
            (
                CommandKind::Resolve {
                    node: node_id,
                    resolution,
                },
                None,
            )
        }
        Intervention::Retry { nodes, set } => {
            let selection = if nodes.is_empty() {
                RetrySelection::AllFailed
            } else {
                RetrySelection::Nodes(nodes)
            };
            let (revision, plan_id) = replanned(commanding, turn, &set).await?.unzip();
            (CommandKind::Retry { selection, revision }, plan_id)
        }
    })
}

/// The next revision of the plan, with the changed parameters. Planning calls no other service, so the
/// operation may stay fenced meanwhile.
async fn replanned(
    commanding: &Commanding<'_>,
    turn: &Turn<'_>,
    set: &Map<String, Value>,
) -> Result<Option<(Arc<PlanIndex>, PlanId)>, Problem> {
    let Some(plan) = turn.state(commanding.operation).map(|state| state.plan().clone()) else {
        return Ok(None);
    };
    if set.is_empty() {
        return Ok(None);
    }
    let organization = commanding.caller.organization;
    let ready = commanding
        .app
        .planner
        .replan(organization, plan.document(), set)
        .await?;
    let index = PlanIndex::new(ready.document, plan.revision() + 1).map_err(|error| of_engine(error.into()))?;
    Ok(Some((Arc::new(index), ready.plan_id)))
}

fn check(body: &InterventionRequest) -> Result<(), Problem> {
    let mut faults = Vec::new();
    if body.reason.chars().count() > MAX_REASON {
        faults.push(FieldError::new(
            "/reason",
            "too_long",
            format!("at most {MAX_REASON} characters"),
        ));
    }
    if body.reason.contains('\0') {
        faults.push(FieldError::new("/reason", "invalid", "NUL is not allowed"));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(faults))
    }
}
