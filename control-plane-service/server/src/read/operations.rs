//! Pages of operations, newest first.

use std::collections::BTreeMap;

use control_plane_api::{OperationState, OperationSummary};
use control_plane_operation::OperationStatus;
use kernel::Selector;
use kernel::id::OperationId;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::operation::{state_of, status};
use crate::store::StoreError;

/// What selects operations.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub state: Option<OperationState>,
    pub pack: Option<String>,
    pub template: Option<String>,
    pub environment: Option<String>,
    pub selector: Option<Selector>,
}

impl Filter {
    fn statuses(&self) -> Option<Vec<String>> {
        let wanted = self.state?;
        let words = OperationStatus::ALL
            .iter()
            .filter(|status| state_of(**status) == wanted)
            .map(|status| status.as_str().to_owned());
        Some(words.collect())
    }

    fn selects(&self, summary: &OperationSummary) -> bool {
        self.selector
            .as_ref()
            .is_none_or(|selector| selector.matches(&summary.labels))
    }
}

/// Up to `limit` operations older than `before`. Labels are matched here: a page is filled from as many
/// rows as it takes.
pub async fn page(
    connection: &mut PgConnection,
    filter: &Filter,
    before: Option<OperationId>,
    limit: usize,
) -> Result<Vec<OperationSummary>, StoreError> {
    let mut found = Vec::new();
    let mut before = before;
    loop {
        let chunk = chunk(connection, filter, before, limit as i64).await?;
        let last = chunk.last().map(|summary| summary.id);
        let full = chunk.len() >= limit;
        found.extend(chunk.into_iter().filter(|summary| filter.selects(summary)));
        if !full || found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
        before = last;
    }
}

async fn chunk(
    connection: &mut PgConnection,
    filter: &Filter,
    before: Option<OperationId>,
    limit: i64,
) -> Result<Vec<OperationSummary>, StoreError> {
    let statuses = filter.statuses();
    let rows = sqlx::query!(
        r#"SELECT id, status, revision, run, pack, template, environment, requester, created_at, last_event_at,
            ended_at, labels AS "labels: Json<BTreeMap<String, String>>"
        FROM operations
        WHERE ($1::uuid IS NULL OR id < $1) AND ($2::text[] IS NULL OR status = ANY($2))
            AND ($3::text IS NULL OR pack = $3) AND ($4::text IS NULL OR template = $4)
            AND ($5::text IS NULL OR environment = $5)
        ORDER BY id DESC LIMIT $6"#,
        before.map(|id| id.0) as Option<Uuid>,
        statuses.as_deref() as Option<&[String]>,
        filter.pack.as_deref(),
        filter.template.as_deref(),
        filter.environment.as_deref(),
        limit,
    )
    .fetch_all(connection)
    .await
    .map_err(database::DatabaseError::from)?;
    rows.into_iter()
        .map(|row| {
            Ok(OperationSummary {
                id: OperationId(row.id),
                state: state_of(status(&row.status)?),
                version: row.revision,
                run: row.run as u32,
                template: format!("{}/{}", row.pack, row.template),
                environment: row.environment,
                requested_by: row.requester,
                created_at: row.created_at,
                updated_at: row.last_event_at,
                ended_at: row.ended_at,
                labels: row.labels.0,
            })
        })
        .collect()
}
