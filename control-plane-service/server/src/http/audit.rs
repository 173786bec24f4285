use api_kit::{Caller, Cursor, Problem, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{AuditEntry, AuditPage, PageQuery};
use uuid::Uuid;

use super::App;
use super::operations::list::limit;

/// Every command, allowed or refused, oldest first.
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(PageQuery), responses((status = 200, body = AuditPage)))]
pub async fn list_audit(
    caller: Caller,
    state: State<App>,
    query: StrictQuery<PageQuery>,
) -> Result<Json<AuditPage>, Problem> {
    let StrictQuery(query) = query;
    let key = ("audit", caller.organization);
    let after: Option<Uuid> = query
        .cursor
        .as_deref()
        .map(|text| Cursor::decode(&key, text))
        .transpose()?;
    let limit = limit(query.limit)? as usize;
    let mut tx = state
        .read(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let mut items = sqlx::query_as!(
        AuditEntry,
        "SELECT id, at AS occurred_at, actor, action, subject, allowed, result, reason, detail FROM audit
        WHERE $1::uuid IS NULL OR id > $1 ORDER BY id LIMIT $2",
        after as Option<Uuid>,
        limit as i64 + 1,
    )
    .fetch_all(&mut *tx)
    .await
    .map_err(|error| database_problem(&error.into()))?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next_cursor = items.last().filter(|_| more).map(|last| Cursor::encode(&key, last.id));
    Ok(Json(AuditPage { items, next_cursor }))
}
