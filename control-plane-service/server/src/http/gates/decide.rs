use api_kit::{Caller, FieldError, IdempotentJson, Problem, StoredResponse, StrictPath};
use axum::extract::State;
use control_plane_api::{Decision, DecisionRequest, GateView};
use control_plane_operation::{CommandKind, GateId};
use kernel::id::OperationId;
use uuid::Uuid;

use super::list::gates;
use crate::engine::Turn;
use crate::http::App;
use crate::http::command::{Asked, Commanding};

const MAX_COMMENT: usize = 2_000;

/// Approves or rejects what a gate covers. A decision binds to the digest that the decider saw; a late one
/// is a conflict and changes nothing.
#[utoipa::path(post, path = "/v1/operations/{operation_id}/gates/{gate_id}/decisions", tag = "gates",
    params(("operation_id" = OperationId, Path), ("gate_id" = Uuid, Path)), request_body = DecisionRequest,
    responses((status = 200, body = GateView, headers(("ETag" = String)))))]
pub async fn decide_gate(
    caller: Caller,
    state: State<App>,
    path: StrictPath<(OperationId, Uuid)>,
    decision: IdempotentJson<DecisionRequest>,
) -> Result<StoredResponse, Problem> {
    let (StrictPath((operation, gate_id)), State(app)) = (path, state);
    let IdempotentJson { body, request } = decision;
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
    let (gate, digest) = (GateId(gate_id), body.covers_digest);
    let asked = Asked {
        kind: match body.decision {
            Decision::Approve => CommandKind::ApproveGate { gate, digest },
            Decision::Reject => CommandKind::RejectGate { gate, digest },
        },
        reason: body.comment,
        expected_version: None,
        plan_id: None,
    };
    let view = async |turn: &Turn<'_>| {
        let state = turn.state(operation).ok_or_else(Problem::internal)?;
        let version = i64::try_from(state.operation().revision).unwrap_or(i64::MAX);
        let all = gates(
            turn.transaction(),
            app.planner.as_ref(),
            state.plan(),
            &caller,
            operation,
        )
        .await?;
        let decided = all.into_iter().find(|view| view.gate_id == Some(gate_id));
        Ok((decided.ok_or_else(Problem::internal)?, version))
    };
    commanding.carry_out(turn, asked, view).await
}

fn check(body: &DecisionRequest) -> Result<(), Problem> {
    if body.comment.chars().count() > MAX_COMMENT || body.comment.contains('\0') {
        let detail = format!("at most {MAX_COMMENT} characters, no NUL");
        return Err(Problem::invalid([FieldError::new("/comment", "invalid", detail)]));
    }
    Ok(())
}
