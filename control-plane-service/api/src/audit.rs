use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A command, allowed or refused: who, what, on what, with which result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub id: Uuid,
    pub occurred_at: DateTime<Utc>,
    pub actor: String,
    /// For example `operation.create`, `gate.decide`.
    pub action: String,
    pub subject: String,
    pub allowed: bool,
    /// `accepted`, or the code of the problem it was refused with.
    pub result: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
}

/// A page of audit entries, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    pub items: Vec<AuditEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
