//! What the audit tells of a request: an [`Act`], from the gate through the handler and back.
//!
//! The gate makes one for every write of a caller whose token is believed. A handler records it in the transaction that
//! does the work ([`Act::record`]), so that neither is there without the other. Whatever the handler did not record (a
//! refusal, a write that changes nothing, an answer given again) the gate writes after it, before the answer is sent,
//! under the same id, which is never written twice. So no write can be left out by forgetting it.
//!
//! A request without a token that is believed leaves no fact: it names no organization whose audit it could be in, and
//! anyone could fill it. It is logged, and counted.

mod query;
mod routes;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::audit::NewFact;
use axum::response::Response;
use database::{Database, DatabaseError, OrgTransaction};
use kernel::id::OrganizationId;
use kernel::with_causes;
use serde_json::{Map, Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

pub(crate) use routes::{routes, rules};

use problem::ProblemCode;

/// How long an answer waits for the fact of its refusal.
const PATIENCE: Duration = Duration::from_secs(2);
/// The code of what is turned away for want of a place: to write of it would make the overload worse.
const TURNED_AWAY: &str = "overloaded";
/// Longest subject that is kept.
const SUBJECT: usize = 500;

/// What an operation leaves in the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// A fact for each request.
    Every { action: &'static str },
    /// Facts of refusals alone; why what is allowed leaves none.
    Refusals { action: &'static str, why: &'static str },
}

impl Keeping {
    pub(crate) const fn action(self) -> &'static str {
        match self {
            Self::Every { action } | Self::Refusals { action, .. } => action,
        }
    }

    /// For the OpenAPI document.
    pub(crate) fn told(self) -> Value {
        match self {
            Self::Every { action } => json!({"action": action, "records": "every request"}),
            Self::Refusals { action, why } => json!({"action": action, "records": "refusals", "why": why}),
        }
    }
}

/// Who asks for what, from where.
pub(crate) struct Request<'a> {
    pub keeping: Keeping,
    pub organization: OrganizationId,
    pub actor: &'a str,
    pub token_id: Uuid,
    pub request_id: String,
    pub path: &'a str,
    pub remote_address: String,
}

/// How a command ended, and what the audit is to know of it.
#[derive(Debug, Clone)]
pub struct Tell {
    allowed: bool,
    result: String,
    subject: Option<String>,
    reason: String,
    detail: Map<String, Value>,
}

impl Tell {
    /// It was carried out.
    #[must_use]
    pub fn accepted() -> Self {
        Self {
            allowed: true,
            result: "accepted".to_owned(),
            subject: None,
            reason: String::new(),
            detail: Map::new(),
        }
    }

    /// It was refused, with the code of a problem.
    #[must_use]
    pub fn refused(code: impl Into<String>) -> Self {
        Self {
            allowed: false,
            result: code.into(),
            ..Self::accepted()
        }
    }

    /// On what, when the path does not tell: `operation/<id>`.
    #[must_use]
    pub fn on(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// What the caller gave as the reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Something more. No secret, and nothing large.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(name.to_owned(), value.into());
        self
    }
}

/// A write of a caller, as the audit tells it. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Act(Option<Arc<Told>>);

#[derive(Debug)]
struct Told {
    id: Uuid,
    keeping: Keeping,
    organization: OrganizationId,
    actor: String,
    subject: String,
    remote_address: String,
    detail: Map<String, Value>,
    /// It is in the handler's transaction: in the database, if the answer is no error.
    recorded: AtomicBool,
    written: AtomicBool,
    /// Facts of parts that were refused without a transaction.
    notes: Mutex<Vec<NewFact>>,
}

impl Act {
    pub(crate) fn new(request: Request<'_>) -> Self {
        let path = request.path.strip_prefix("/v1/").unwrap_or(request.path);
        let detail = json!({"request_id": request.request_id, "token_id": request.token_id});
        Self(Some(Arc::new(Told {
            id: Uuid::now_v7(),
            keeping: request.keeping,
            organization: request.organization,
            actor: request.actor.to_owned(),
            subject: path.chars().take(SUBJECT).collect(),
            remote_address: request.remote_address,
            detail: match detail {
                Value::Object(detail) => detail,
                _ => Map::new(),
            },
            recorded: AtomicBool::new(false),
            written: AtomicBool::new(false),
            notes: Mutex::default(),
        })))
    }

    /// Writes the fact of this command within its transaction.
    ///
    /// # Errors
    /// The database refused; the transaction is then broken.
    pub async fn record(&self, transaction: &OrgTransaction, tell: Tell) -> Result<(), DatabaseError> {
        let fact = self.recorded(tell);
        ::audit::append(transaction, fact.as_slice()).await
    }

    /// [`Act::record`] through sqlx.
    ///
    /// # Errors
    /// As [`Act::record`].
    pub async fn record_sqlx(&self, connection: &mut PgConnection, tell: Tell) -> Result<(), DatabaseError> {
        let fact = self.recorded(tell);
        ::audit::append_sqlx(connection, fact.as_slice()).await
    }

    fn recorded(&self, tell: Tell) -> Option<NewFact> {
        let told = self.0.as_ref()?;
        told.recorded.store(true, Ordering::Release);
        self.fact(tell)
    }

    /// The fact of this command, for who writes it elsewhere ([`::audit::append`]) and then says so by [`Act::written`].
    /// None when nothing is kept of it.
    #[must_use]
    pub fn fact(&self, tell: Tell) -> Option<NewFact> {
        let told = self.0.as_ref()?;
        Some(told.fact(told.id, tell))
    }

    /// The fact of one part of this command, where each has an outcome of its own. Together they stand instead of the
    /// command's.
    #[must_use]
    pub fn part(&self, tell: Tell) -> Option<NewFact> {
        let told = self.0.as_ref()?;
        Some(told.fact(Uuid::now_v7(), tell))
    }

    /// The fact was committed, whatever the answer says. Not said, the gate writes it, which then changes nothing.
    pub fn written(&self) {
        if let Some(told) = &self.0 {
            told.written.store(true, Ordering::Release);
        }
    }

    /// Takes note of a part that was refused before there was a transaction; the gate writes it.
    pub fn note(&self, tell: Tell) {
        if let (Some(told), Some(fact)) = (&self.0, self.part(tell)) {
            told.notes.lock().unwrap_or_else(PoisonError::into_inner).push(fact);
        }
    }

    /// What is still to be written once `response` is known.
    pub(crate) fn left(&self, response: &Response) -> Vec<NewFact> {
        let Some(told) = &self.0 else { return Vec::new() };
        let mut facts = core::mem::take(&mut *told.notes.lock().unwrap_or_else(PoisonError::into_inner));
        let status = response.status();
        let code = response.extensions().get::<ProblemCode>().map(|code| code.0.as_str());
        if code == Some(TURNED_AWAY) || told.written.load(Ordering::Acquire) {
            return facts;
        }
        let is_refused = status.is_client_error() || status.is_server_error();
        let is_told = told.recorded.load(Ordering::Acquire) || matches!(told.keeping, Keeping::Refusals { .. });
        if is_refused || !is_told {
            let tell = match code {
                Some(code) if is_refused => Tell::refused(code),
                None if is_refused => Tell::refused(status.as_str()),
                _ => Tell::accepted(),
            };
            facts.push(told.fact(told.id, tell.with("status", status.as_u16())));
        }
        facts
    }

    /// Writes what the handler did not; answers how many facts could not be written. Nothing was promised by them, so
    /// they do not wait for the disk.
    pub(crate) async fn settle(database: &Database, facts: Vec<NewFact>) -> usize {
        let Some(first) = facts.first() else { return 0 };
        let written = tokio::time::timeout(PATIENCE, write(database, first.organization, &facts)).await;
        let fault = match &written {
            Ok(Ok(())) => return 0,
            Ok(Err(error)) => with_causes(error),
            Err(_) => "the database does not answer in time".to_owned(),
        };
        for fact in &facts {
            let NewFact {
                actor,
                action,
                subject,
                result,
                remote_address,
                ..
            } = fact;
            tracing::warn!(
                fault,
                actor,
                action,
                subject,
                result,
                remote_address,
                "an audit fact could not be written"
            );
        }
        facts.len()
    }
}

impl Told {
    fn fact(&self, id: Uuid, tell: Tell) -> NewFact {
        let mut detail = self.detail.clone();
        detail.extend(tell.detail);
        NewFact {
            id,
            organization: self.organization,
            actor: self.actor.clone(),
            action: self.keeping.action().to_owned(),
            subject: tell.subject.unwrap_or_else(|| self.subject.clone()),
            allowed: tell.allowed,
            result: tell.result,
            reason: tell.reason,
            remote_address: self.remote_address.clone(),
            detail: Value::Object(detail),
        }
    }
}

async fn write(database: &Database, organization: OrganizationId, facts: &[NewFact]) -> Result<(), DatabaseError> {
    let transaction = database.begin_unsynced(organization).await?;
    transaction.begun().await?;
    ::audit::append(&transaction, facts).await?;
    transaction.commit().await
}
