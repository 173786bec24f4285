//! Facts about attempts, written to the outbox with the change that they tell of.

use chrono::{DateTime, Utc};
use contracts::{ExecutionResult, JobSpec};
use database::OrgTransaction;
use execution_plane_domain::attempt::State;
use kernel::id::{AttemptId, OrganizationId};
use outbox::NewEvent;
use serde_json::{Value, json};
use uuid::Uuid;

use super::error::StoreError;
use super::locked::Locked;
use super::words;

/// One fact.
#[derive(Debug, Clone)]
pub struct Fact {
    attempt: AttemptId,
    /// Of the attempt after the change.
    version: u64,
    kind: &'static str,
    at: DateTime<Utc>,
    payload: Value,
    traceparent: Option<String>,
}

impl Fact {
    fn of_spec(spec: &JobSpec, version: u64, kind: &'static str, state: State, at: DateTime<Utc>) -> Self {
        let payload = json!({
            "attempt_id": spec.attempt_id,
            "operation_id": spec.operation_id,
            "plan_node_id": spec.plan_node_id,
            "job_type": spec.job_type,
            "state": state.as_str(),
        });
        Self {
            attempt: spec.attempt_id,
            version,
            kind,
            at,
            payload,
            traceparent: spec.traceparent.clone(),
        }
    }

    /// It was accepted, and perhaps leased in the same moment.
    pub fn accepted(spec: &JobSpec, state: State, at: DateTime<Utc>) -> Self {
        Self::of_spec(spec, 1, "attempt.accepted", state, at)
    }

    /// It was leased out of the queue.
    pub fn leased(spec: &JobSpec, version: u64, at: DateTime<Utc>) -> Self {
        Self::of_spec(spec, version, "attempt.leased", State::Leased, at)
    }

    fn of_locked(locked: &Locked, kind: &'static str, state: State) -> Self {
        let payload = json!({
            "attempt_id": locked.id,
            "operation_id": locked.operation_id,
            "plan_node_id": locked.plan_node_id,
            "state": state.as_str(),
        });
        Self {
            attempt: locked.id,
            version: locked.version + 1,
            kind,
            at: locked.now,
            payload,
            traceparent: None,
        }
    }

    /// Its job runs.
    pub fn running(locked: &Locked, state: State) -> Self {
        Self::of_locked(locked, "attempt.running", state)
    }

    /// Its end was asked for.
    pub fn cancelling(locked: &Locked) -> Self {
        Self::of_locked(locked, "attempt.cancelling", State::Cancelling)
    }

    /// It has ended.
    pub fn finished(locked: &Locked, state: State, result: &ExecutionResult) -> Self {
        let mut fact = Self::of_locked(locked, "attempt.finished", state);
        fact.payload["status"] = json!(result.status);
        fact.payload["category"] = json!(result.exit_summary.category);
        fact.payload["reason"] = json!(result.reason);
        fact
    }
}

/// Writes `facts`, in their order.
pub async fn record(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    facts: Vec<Fact>,
) -> Result<(), StoreError> {
    let event = |fact: Fact| NewEvent {
        organization,
        key: fact.attempt.to_string(),
        version: words::column(fact.version),
        kind: fact.kind.to_owned(),
        event_id: Uuid::now_v7(),
        payload: fact.payload.to_string(),
        occurred_at: fact.at,
        traceparent: fact.traceparent,
    };
    let events: Vec<NewEvent> = facts.into_iter().map(event).collect();
    Ok(outbox::append(transaction, &events).await?)
}
