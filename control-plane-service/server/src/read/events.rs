//! An operation's events, oldest first.

use control_plane_api::OperationEvent;
use control_plane_operation::{Actor, Cause, Event};
use kernel::id::OperationId;
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;

use super::operation::status;
use crate::store::StoreError;

/// Where an operation's story stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub last_event: i64,
    pub is_over: bool,
}

/// Reads where the story stands. `None`: the organization has no such operation.
pub async fn standing(connection: &mut PgConnection, id: OperationId) -> Result<Option<Standing>, StoreError> {
    let row = sqlx::query!("SELECT last_event, status FROM operations WHERE id = $1", id.0)
        .fetch_optional(connection)
        .await
        .map_err(database::DatabaseError::from)?;
    row.map(|row| {
        Ok(Standing {
            last_event: row.last_event,
            is_over: status(&row.status)?.is_end(),
        })
    })
    .transpose()
}

/// Up to `limit` events after `after`.
pub async fn page(
    connection: &mut PgConnection,
    id: OperationId,
    after: i64,
    limit: i64,
) -> Result<Vec<OperationEvent>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT body AS "body: Json<Event>" FROM operation_events
        WHERE operation_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3"#,
        id.0,
        after,
        limit,
    )
    .fetch_all(connection)
    .await
    .map_err(database::DatabaseError::from)?;
    rows.into_iter().map(|row| view(row.body.0)).collect()
}

/// An event as people see it.
pub fn view(event: Event) -> Result<OperationEvent, StoreError> {
    let corrupt = |error: serde_json::Error| StoreError::corrupt("event")(Box::new(error));
    let mut detail = serde_json::to_value(&event.kind).map_err(corrupt)?;
    let (mut node_id, mut run) = (None, None);
    if let Value::Object(fields) = &mut detail {
        fields.remove("type");
        node_id = fields.get("node").and_then(Value::as_str).map(str::to_owned);
        run = fields.get("run").and_then(Value::as_u64);
    }
    Ok(OperationEvent {
        sequence: event.sequence as i64,
        event_type: event.kind.as_str().to_owned(),
        run: run.and_then(|run| u32::try_from(run).ok()),
        node_id,
        actor: actor(&event.actor),
        cause: cause(&event.cause),
        text: event.kind.text(),
        detail,
        occurred_at: event.at,
    })
}

fn actor(actor: &Actor) -> String {
    match actor {
        Actor::Person(subject) => subject.clone(),
        Actor::ControlPlane => "control-plane".to_owned(),
        Actor::ExecutionPlane => "execution-plane".to_owned(),
        Actor::Catalog => "resource-catalog".to_owned(),
    }
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Start => "start".to_owned(),
        Cause::Claims => "claims".to_owned(),
        Cause::Validation => "validation".to_owned(),
        Cause::Timer => "timer".to_owned(),
        Cause::Command(id) => format!("command {id}"),
        Cause::Attempt(id) => format!("attempt {id}"),
        Cause::Update(id) => format!("update {id}"),
    }
}
