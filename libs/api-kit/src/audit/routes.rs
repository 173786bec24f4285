//! The audit, readable by those who answer for the organization.

use ::audit::{AuditPage, ChainHead, ChainPage};
use axum::Json;
use axum::extract::State;
use database::{Database, DatabaseError};
use identity::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::query::{ChainQuery, ListQuery};
use crate::{Caller, FieldError, Paging, Problem, Rule, StrictQuery, database_problem};

const AUDITORS: &[Role] = &[Role::Admin];

/// The routes; without a database for the document alone.
pub(crate) fn routes(database: Option<Database>) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(list_audit))
        .routes(routes!(read_audit_chain))
        .routes(routes!(get_audit_head))
        .with_state(database)
}

pub(crate) fn rules() -> [Rule; 3] {
    [
        Rule::new("GET", "/v1/audit", AUDITORS),
        Rule::new("GET", "/v1/audit/chain", AUDITORS),
        Rule::new("GET", "/v1/audit/head", AUDITORS),
    ]
}

fn failed(error: DatabaseError) -> Problem {
    database_problem(&error)
}

fn open(database: Option<&Database>) -> Result<&Database, Problem> {
    database.ok_or_else(Problem::internal)
}

/// Every command, allowed or refused, oldest first.
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(ListQuery), responses((status = 200, body = AuditPage)))]
async fn list_audit(
    caller: Caller,
    state: State<Option<Database>>,
    query: StrictQuery<ListQuery>,
) -> Result<Json<AuditPage>, Problem> {
    let (State(database), StrictQuery(query)) = (&state, &query);
    let database = open(database.as_ref())?;
    let organization = caller.organization;
    let head = async { ::audit::revision(database, organization).await.map_err(failed) };
    let paging: Paging<_, Uuid> = Paging::begin(
        ("audit", organization),
        query.cursor.as_deref(),
        query.limit.get(),
        head,
    )
    .await?;
    let facts = ::audit::list(database, organization, paging.after, paging.rows()).await;
    let mut items = facts.map_err(failed)?;
    let next_cursor = paging.cut(&mut items, |last| last.id);
    Ok(Json(AuditPage {
        items,
        next_cursor,
        revision: paging.revision,
    }))
}

/// The hash chain over the audit, link by link. Each hash is SHA-256 over the canonical JSON (RFC 8785) of `chained_at`,
/// `fact`, `previous_hash` and `sequence`.
#[utoipa::path(get, path = "/v1/audit/chain", tag = "audit", params(ChainQuery),
    responses((status = 200, body = ChainPage)))]
async fn read_audit_chain(
    caller: Caller,
    state: State<Option<Database>>,
    query: StrictQuery<ChainQuery>,
) -> Result<Json<ChainPage>, Problem> {
    let (State(database), StrictQuery(query)) = (&state, &query);
    let database = open(database.as_ref())?;
    if query.after < 0 {
        let fault = FieldError::new("/after", "out_of_range", "a sequence is not negative");
        return Err(Problem::invalid([fault]));
    }
    let page = ::audit::chain(database, caller.organization, query.after, query.limit.get()).await;
    page.map(Json).map_err(failed)
}

/// Where the chain ends, and how many facts there are in it and beside it. Kept elsewhere, it shows later whether the
/// chain was made anew.
#[utoipa::path(get, path = "/v1/audit/head", tag = "audit", responses((status = 200, body = ChainHead)))]
async fn get_audit_head(caller: Caller, state: State<Option<Database>>) -> Result<Json<ChainHead>, Problem> {
    let State(database) = &state;
    let head = ::audit::head(open(database.as_ref())?, caller.organization).await;
    head.map(Json).map_err(failed)
}
