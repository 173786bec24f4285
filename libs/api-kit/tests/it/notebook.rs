//! A notebook: notes in a real database, behind the shared layers.

use api_kit::{
    AccessTable, Api, ApiBuilder, BuildError, Caller, Claim, Closing, ETag, Health, IdempotentJson, IfMatch,
    LastEventId, Limit, OpenApiRouter, Paging, Problem, Rule, SseEvent, StoredResponse, StrictJson, StrictPath,
    StrictQuery, database_problem, idempotency_hot, routes, sse,
};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use database::Database;
use futures::stream;
use identity::{Role, TrustStore};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NewNote {
    pub body: String,
    #[serde(default)]
    pub tags: Vec<Tag>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Tag {
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Note {
    pub id: Uuid,
    pub body: String,
    pub version: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Notes {
    pub items: Vec<Note>,
    pub next_cursor: Option<String>,
    pub revision: i64,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListNotes {
    #[serde(default)]
    limit: Limit,
    cursor: Option<String>,
    contains: Option<String>,
}

fn fault(error: tokio_postgres::Error) -> Problem {
    database_problem(&error.into())
}

fn note(row: &tokio_postgres::Row) -> Note {
    Note {
        id: row.get(0),
        body: row.get(1),
        version: row.get(2),
    }
}

/// Writes a note.
#[utoipa::path(post, path = "/v1/notes", request_body = NewNote, responses((status = 201, body = Note)))]
async fn create(
    State(database): State<Database>,
    caller: Caller,
    IdempotentJson { body, request }: IdempotentJson<NewNote>,
) -> Result<StoredResponse, Problem> {
    let organization = caller.organization;
    let transaction = database
        .begin_hot(organization)
        .await
        .map_err(|e| database_problem(&e))?;
    if let Claim::Replay(answer) = idempotency_hot::claim(&transaction, organization, &request).await? {
        return Ok(answer);
    }
    let id = Uuid::now_v7();
    let insert = "INSERT INTO notes (organization_id, id, body) VALUES ($1, $2, $3) RETURNING id, body, version";
    let row = transaction
        .query_one(insert, &[&organization.as_uuid(), &id, &body.body])
        .await;
    let answer = StoredResponse::json(201, &note(&row.map_err(fault)?))?
        .version(1)
        .location(format!("/v1/notes/{id}"));
    idempotency_hot::store(&transaction, organization, &request, &answer).await?;
    transaction.commit().await.map_err(|e| database_problem(&e))?;
    Ok(answer)
}

/// Lists notes.
#[utoipa::path(get, path = "/v1/notes", params(ListNotes), responses((status = 200, body = Notes)))]
async fn list(
    State(database): State<Database>,
    caller: Caller,
    StrictQuery(query): StrictQuery<ListNotes>,
) -> Result<Json<Notes>, Problem> {
    let selection = (caller.organization, query.contains.clone());
    // Notes have no feed.
    let head = async { Ok(0) };
    let paging = Paging::<_, Uuid>::begin(selection, query.cursor.as_deref(), query.limit.get(), head).await?;
    let after = paging.after.unwrap_or_default();
    let transaction = database
        .begin_hot(caller.organization)
        .await
        .map_err(|e| database_problem(&e))?;
    let pattern = query.contains.unwrap_or_default();
    let rows = transaction
        .query(
            "SELECT id, body, version FROM notes WHERE id > $1 AND position($2 in body) > 0 ORDER BY id LIMIT $3",
            &[&after, &pattern, &paging.rows()],
        )
        .await
        .map_err(fault)?;
    let mut items: Vec<Note> = rows.iter().map(note).collect();
    let next_cursor = paging.cut(&mut items, |note| note.id);
    Ok(Json(Notes {
        items,
        next_cursor,
        revision: paging.revision,
    }))
}

async fn find(database: &Database, caller: &Caller, id: Uuid) -> Result<Note, Problem> {
    let transaction = database
        .begin_hot(caller.organization)
        .await
        .map_err(|e| database_problem(&e))?;
    let row = transaction
        .query_opt("SELECT id, body, version FROM notes WHERE id = $1", &[&id])
        .await;
    row.map_err(fault)?
        .as_ref()
        .map(note)
        .ok_or_else(|| Problem::not_found(format!("note {id}")))
}

/// Reads a note.
#[utoipa::path(get, path = "/v1/notes/{id}", params(("id" = Uuid, Path)), responses((status = 200, body = Note)))]
async fn read(
    State(database): State<Database>,
    caller: Caller,
    StrictPath(id): StrictPath<Uuid>,
) -> Result<(ETag, Json<Note>), Problem> {
    let note = find(&database, &caller, id).await?;
    Ok((ETag(note.version), Json(note)))
}

/// Replaces a note's body.
#[utoipa::path(put, path = "/v1/notes/{id}", params(("id" = Uuid, Path)), request_body = NewNote, responses((status = 200, body = Note)))]
async fn replace(
    State(database): State<Database>,
    caller: Caller,
    StrictPath(id): StrictPath<Uuid>,
    if_match: IfMatch,
    StrictJson(new): StrictJson<NewNote>,
) -> Result<(ETag, Json<Note>), Problem> {
    let current = find(&database, &caller, id).await?;
    if_match.required()?.check(format!("note {id}"), current.version)?;
    let transaction = database
        .begin_hot(caller.organization)
        .await
        .map_err(|e| database_problem(&e))?;
    let update = "UPDATE notes SET body = $2, version = version + 1 WHERE id = $1 RETURNING id, body, version";
    let row = transaction.query_one(update, &[&id, &new.body]).await.map_err(fault)?;
    transaction.commit().await.map_err(|e| database_problem(&e))?;
    Ok((ETag(row.get(2)), Json(note(&row))))
}

/// Reads a note line by line.
#[utoipa::path(get, path = "/v1/notes/{id}/lines", params(("id" = Uuid, Path)),
    responses((status = 200, content_type = "text/event-stream", body = String)))]
async fn lines(
    State(database): State<Database>,
    caller: Caller,
    StrictPath(id): StrictPath<Uuid>,
    last: LastEventId,
    closing: Closing,
) -> Result<Response, Problem> {
    let from = last.parse::<usize>()?.map_or(0, |seen| seen + 1);
    let note = find(&database, &caller, id).await?;
    let lines: Vec<String> = note.body.lines().map(str::to_owned).collect();
    let events = lines
        .into_iter()
        .enumerate()
        .skip(from)
        .map(|(number, line)| match line.as_str() {
            "torn" => Err(Problem::unavailable("The line is torn.")),
            _ => Ok(SseEvent::new("line", &line).expect("a string is JSON").id(number)),
        });
    Ok(sse(stream::iter(events), closing))
}

/// Told when a request begins to wait in [`wait`].
pub static WAITS: tokio::sync::Notify = tokio::sync::Notify::const_new();

/// Waits until the service ends.
#[utoipa::path(get, path = "/v1/wait", responses((status = 200, body = String)))]
async fn wait(closing: Closing) -> &'static str {
    WAITS.notify_one();
    closing.closed().await;
    "closing"
}

/// Panics.
#[utoipa::path(post, path = "/v1/panic", responses((status = 200)))]
async fn panics() -> &'static str {
    panic!("canary-of-the-panic")
}

/// Takes large bytes.
#[utoipa::path(put, path = "/v1/blobs/{name}", params(("name" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses((status = 200, body = usize)))]
async fn blob(StrictPath(_name): StrictPath<String>, bytes: axum::body::Bytes) -> Json<usize> {
    Json(bytes.len())
}

pub const READERS: &[Role] = &[Role::Viewer, Role::Operator];
pub const WRITERS: &[Role] = &[Role::Operator];

pub fn rules() -> Vec<Rule> {
    vec![
        Rule::new("POST", "/v1/notes", WRITERS).idempotency_key(),
        Rule::new("GET", "/v1/notes", READERS),
        Rule::new("GET", "/v1/notes/{id}", READERS),
        Rule::new("PUT", "/v1/notes/{id}", WRITERS)
            .if_match()
            .body_limit(64 * 1024)
            .refuses(&[428]),
        Rule::new("GET", "/v1/notes/{id}/lines", READERS).refuses(&[400]),
        Rule::new("GET", "/v1/wait", READERS),
        Rule::new("POST", "/v1/panic", WRITERS),
        Rule::new("PUT", "/v1/blobs/{name}", WRITERS).body_limit(32 * 1024 * 1024),
    ]
}

pub fn build(database: &Database, rules: Vec<Rule>, trust: TrustStore) -> Result<Api, BuildError> {
    let routes = OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(read, replace))
        .routes(routes!(lines))
        .routes(routes!(wait))
        .routes(routes!(panics))
        .routes(routes!(blob))
        .with_state(database.clone());
    let health = Health::default().database("database", database);
    ApiBuilder::new("notebook", "1.0.0", routes, AccessTable::new(rules))
        .health(health)
        .build(trust)
}
