//! What a request passes before any handler: known path, known method, token, role, required
//! headers, size. The gate fails closed: what is not in the table is not reached.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use chrono::Utc;
use database::Database;
use http::header::{ALLOW, AUTHORIZATION, CONNECTION, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt as _, Limited};
use identity::{Role, TrustStore, VerifyError};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::Problem;
use crate::access::{Access, AccessTable, Rule};
use crate::audit::{self, Act};
use crate::caller::Caller;
use crate::idempotency::IdempotencyKey;
use crate::metrics::Metrics;
use crate::peer::PeerAddress;
use crate::request_id::RequestId;

/// What the gate knows.
pub(crate) struct Gate {
    pub table: AccessTable,
    pub trust: TrustStore,
    pub body_limit: usize,
    /// Where the audit is written; none for an API without commands.
    pub audit: Option<Database>,
    pub metrics: Metrics,
    /// How many requests of people and their programs are worked on at once.
    pub places: Semaphore,
}

/// Bytes of an oversized body that are still read, so that its sender gets to read the answer.
const DRAINED: usize = 16 * 1024 * 1024;

pub(crate) async fn pass(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let Some(path) = request.extensions().get::<MatchedPath>().cloned() else {
        return next.run(request).await;
    };
    let Some(rule) = gate.table.find(request.method(), path.as_str()) else {
        return method_not_allowed(&gate.table, path.as_str());
    };
    let caller = match believe(&gate.trust, rule, request.headers()) {
        Ok(caller) => caller,
        Err(refusal) => return refuse(refusal, request).await,
    };
    let act = match (&caller, &gate.audit) {
        (Some(caller), Some(_)) => act(rule, caller, &request),
        _ => Act::default(),
    };
    let response = match admit(&gate, rule, caller.as_ref(), request.headers()) {
        // The place is held until the answer begins.
        Ok(_place) => {
            if let Some(caller) = caller {
                let act = act.clone();
                request.extensions_mut().insert(Caller { act, ..caller });
            }
            within_size(rule.body_limit.unwrap_or(gate.body_limit), request, next).await
        }
        Err(refusal) => refuse(refusal, request).await,
    };
    if let Some(database) = &gate.audit {
        let lost = Act::settle(database, act.left(&response)).await;
        gate.metrics.not_audited(lost);
    }
    response
}

async fn within_size(limit: usize, request: Request, next: Next) -> Response {
    if declared_length(request.headers()).is_some_and(|length| length > limit as u64) {
        return refuse(too_large(limit), request).await;
    }
    let limited = request.map(|body| Body::new(Limited::new(body, limit)));
    next.run(limited).await
}

/// The caller, if there must be one.
fn believe(trust: &TrustStore, rule: &Rule, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
    if rule.access == Access::Public {
        return Ok(None);
    }
    let claims = trust.verify(bearer(headers)?, Utc::now()).map_err(not_believed)?;
    Ok(Some(Caller::from_claims(claims)))
}

/// What the audit is to tell of the request.
fn act(rule: &Rule, caller: &Caller, request: &Request) -> Act {
    let Some(keeping) = rule.audit else {
        return Act::default();
    };
    let id = request.extensions().get::<RequestId>();
    Act::new(audit::Request {
        keeping,
        organization: caller.organization,
        actor: &caller.subject,
        token_id: caller.token_id,
        request_id: id.map(|id| id.0.clone()).unwrap_or_default(),
        path: request.uri().path(),
        remote_address: PeerAddress::of(request.extensions()),
    })
}

/// Whether the caller may call, and a place for its request when it needs one.
fn admit<'a>(
    gate: &'a Gate,
    rule: &Rule,
    caller: Option<&Caller>,
    headers: &HeaderMap,
) -> Result<Option<SemaphorePermit<'a>>, Problem> {
    if let (Some(caller), Access::Roles(roles)) = (caller, rule.access)
        && !roles.iter().any(|role| caller.has_role(*role))
    {
        let needed: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        return Err(Problem::forbidden(format!(
            "This takes one of the roles: {}.",
            needed.join(", ")
        )));
    }
    if rule.needs_idempotency_key {
        IdempotencyKey::from_headers(headers)?;
    }
    caller.map_or(Ok(None), |caller| place(&gate.places, caller))
}

/// What the platform's own parts ask carries on what was promised, so it is never turned away: that would make
/// an overload worse. (They are few, and each asks little at once.)
fn place<'a>(places: &'a Semaphore, caller: &Caller) -> Result<Option<SemaphorePermit<'a>>, Problem> {
    if caller.has_role(Role::Service) || caller.has_role(Role::Runner) {
        return Ok(None);
    }
    places.try_acquire().map(Some).map_err(|_| Problem::overloaded())
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let missing = || Problem::unauthenticated("token_missing", "The request carries no bearer token.");
    let value = headers.get(AUTHORIZATION).ok_or_else(missing)?;
    let text = value.to_str().map_err(|_| missing())?;
    let (scheme, token) = text.split_once(' ').ok_or_else(missing)?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim())
        .ok_or_else(missing)
}

fn not_believed(error: VerifyError) -> Problem {
    let code = match error {
        VerifyError::Expired(_) => "token_expired",
        _ => "token_invalid",
    };
    tracing::info!(%error, "a token was refused");
    Problem::unauthenticated(code, format!("{error}."))
}

fn method_not_allowed(table: &AccessTable, path: &str) -> Response {
    let methods = table.methods(path).join(", ");
    if methods.is_empty() {
        return Problem::not_found("such path").into_response();
    }
    let problem = Problem::new(405, "method_not_allowed", "The path does not take this method")
        .detail(format!("This path takes {methods}."));
    let mut response = problem.into_response();
    // Method names are ASCII tokens.
    if let Ok(allow) = HeaderValue::from_str(&methods) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

pub(crate) fn too_large(limit: usize) -> Problem {
    Problem::new(413, "body_too_large", "The request body is too large")
        .detail(format!("At most {limit} bytes are accepted here."))
        .with("limit", limit)
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Answers without a handler. A body of bounded size is read first: a sender that is cut off midway
/// would see a broken connection instead of the answer.
async fn refuse(problem: Problem, request: Request) -> Response {
    let oversized = problem.status == 413;
    if declared_length(request.headers()).is_none_or(|length| length <= DRAINED as u64) {
        let mut body = Limited::new(request.into_body(), DRAINED);
        while let Some(Ok(_)) = body.frame().await {}
    }
    let mut response = problem.into_response();
    if oversized {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
