use api_kit::{
    Caller, Claim, FieldError, IdempotentJson, Problem, StoredResponse, Tell, database_problem, idempotency_hot,
};
use axum::extract::State;
use control_plane_api::{CreateOperation, Operation, Overlap};
use kernel::id::{OperationId, PlanId};
use serde_json::json;

use crate::engine::{CreateRefused, Engine, NewOperationRequest, Turn};
use crate::http::App;
use crate::http::fault::{of_engine, of_store};
use crate::planner::ReadyPlan;
use crate::points;
use crate::read;

const MAX_REASON: usize = 500;
const MAX_LABELS: usize = 32;
const MAX_LABEL: usize = 253;

/// Makes an operation of a stored plan, or plans and starts in one.
#[utoipa::path(post, path = "/v1/operations", tag = "operations", request_body = CreateOperation,
    responses((status = 201, body = Operation, headers(("ETag" = String), ("Location" = String)))))]
pub async fn create_operation(
    caller: Caller,
    state: State<App>,
    create: IdempotentJson<CreateOperation>,
) -> Result<StoredResponse, Problem> {
    let State(app) = state;
    let IdempotentJson { body, request } = create;
    check(&body)?;
    let id = OperationId::new_v7();
    let mut turn = app
        .engine
        .turn_for_new(caller.organization, id)
        .await
        .map_err(of_engine)?;
    if let Claim::Replay(stored) = idempotency_hot::claim(turn.transaction(), caller.organization, &request).await? {
        return Ok(stored);
    }
    let plan = ready_plan(&app, &caller, &body).await?;
    let outcome = turn
        .create(new_operation(id, &caller, plan, body))
        .await
        .map_err(of_engine)?;
    let response = match outcome {
        Ok(()) => created(&mut turn, &caller, id).await?,
        Err(CreateRefused::PlanCarriedOut(plan_id)) => refused(&turn, &caller, plan_id).await?,
    };
    idempotency_hot::store(turn.transaction(), caller.organization, &request, &response).await?;
    points::hit("control_plane.create.before_commit");
    finish(&app.engine, turn).await?;
    points::hit("control_plane.create.after_commit");
    caller.act.written();
    Ok(response)
}

/// Commits, and lets the runtime take over.
pub async fn finish(engine: &Engine, turn: Turn<'_>) -> Result<(), Problem> {
    for advance in turn.commit().await.map_err(of_engine)? {
        engine.hand_over(advance);
    }
    Ok(())
}

async fn ready_plan(app: &App, caller: &Caller, body: &CreateOperation) -> Result<ReadyPlan, Problem> {
    let plan = match (&body.plan_id, &body.plan) {
        (Some(plan_id), _) => app.planner.stored(caller.organization, *plan_id).await?,
        (None, Some(request)) => app.planner.plan(caller.organization, &caller.subject, request).await?,
        (None, None) => return Err(neither_plan()),
    };
    let digest = plan.document.digest();
    match body.expected_digest {
        Some(expected) if expected != digest => Err(Problem::conflict(
            "plan_digest_mismatch",
            "The plan is another one than was reviewed.",
        )
        .remedy("Review the plan again and give its digest.")
        .with("current_digest", digest.to_hex())),
        _ => Ok(plan),
    }
}

fn new_operation(id: OperationId, caller: &Caller, plan: ReadyPlan, body: CreateOperation) -> NewOperationRequest {
    NewOperationRequest {
        id,
        requester: caller.subject.clone(),
        plan_id: plan.plan_id,
        document: plan.document,
        wait_for_claims: body.on_overlap == Overlap::Queue,
        reason: body.reason,
        labels: body.labels,
    }
}

async fn created(turn: &mut Turn<'_>, caller: &Caller, id: OperationId) -> Result<StoredResponse, Problem> {
    turn.write().await.map_err(of_engine)?;
    let operation = read::operation::find(turn.transaction(), id)
        .await
        .map_err(of_store)?
        .ok_or_else(Problem::internal)?;
    let tell = Tell::accepted()
        .on(format!("operation/{id}"))
        .because(operation.reason.as_str())
        .with("plan_id", json!(operation.plan.plan_id))
        .with("plan_digest", json!(operation.plan.digest));
    let recorded = caller.act.record(turn.transaction(), tell).await;
    recorded.map_err(|error| database_problem(&error))?;
    let response = StoredResponse::json(201, &operation)?;
    Ok(response
        .version(operation.summary.version)
        .location(format!("/v1/operations/{id}")))
}

async fn refused(turn: &Turn<'_>, caller: &Caller, plan_id: PlanId) -> Result<StoredResponse, Problem> {
    let problem = Problem::conflict(
        "plan_carried_out",
        format!("Plan {plan_id} is carried out by an operation already."),
    )
    .remedy("A plan is carried out once: make a new plan.");
    let tell = Tell::refused(problem.code.as_str()).on(format!("plan/{plan_id}"));
    let recorded = caller.act.record(turn.transaction(), tell).await;
    recorded.map_err(|error| database_problem(&error))?;
    StoredResponse::json(409, &problem)
}

fn neither_plan() -> Problem {
    Problem::invalid([FieldError::new(
        "",
        "plan_missing",
        "exactly one of plan_id and plan is needed",
    )])
}

fn check(body: &CreateOperation) -> Result<(), Problem> {
    let mut faults = Vec::new();
    match (&body.plan_id, &body.plan) {
        (Some(_), None) | (None, Some(_)) => {}
        _ => return Err(neither_plan()),
    }
    if body.plan_id.is_some() && body.expected_digest.is_none() {
        faults.push(FieldError::new(
            "/expected_digest",
            "missing",
            "the digest that was reviewed is needed with plan_id",
        ));
    }
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
    if body.labels.len() > MAX_LABELS {
        faults.push(FieldError::new(
            "/labels",
            "too_many",
            format!("at most {MAX_LABELS} labels"),
        ));
    }
    for (key, value) in &body.labels {
        if key.is_empty()
            || key.len() > MAX_LABEL
            || value.len() > MAX_LABEL
            || key.contains('\0')
            || value.contains('\0')
        {
            let pointer = format!("/labels/{}", key.replace('~', "~0").replace('/', "~1"));
            faults.push(FieldError::new(
                pointer,
                "invalid",
                format!("key and value have at most {MAX_LABEL} bytes, no NUL"),
            ));
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(faults))
    }
}
