//! A fact as everyone sees it.

use chrono::{DateTime, Utc};
use kernel::id::OrganizationId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A command, allowed or refused: who, what, on what, with which result, from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditFact {
    pub id: Uuid,
    pub organization_id: OrganizationId,
    pub occurred_at: DateTime<Utc>,
    /// The subject of the caller's token.
    pub actor: String,
    /// For example `operation.create`, `gate.decide`.
    pub action: String,
    /// On what: a path below `/v1/`, or a kind and an id.
    pub subject: String,
    pub allowed: bool,
    /// `accepted`, or the code of the problem it was refused with.
    pub result: String,
    /// What the caller gave as the reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The address at the other end of the connection, empty when there was none: a proxy's, where one is between.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remote_address: String,
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
}

/// Which page of facts to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditQuery {
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// At most 1,000; 100 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of facts, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    pub items: Vec<AuditFact>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The last sequence of the chain before the first page: what is chained later comes beyond it.
    pub revision: i64,
}
