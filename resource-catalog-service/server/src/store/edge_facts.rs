//! What is known of the far ends of edges that are to be added.
//!
//! Cardinality at the target and freedom from circles span rows, so who adds edges of one type takes turns within the
//! organization: an advisory lock for each (organization, edge type), always taken after the source's row.

use std::collections::BTreeMap;

use database::OrgTransaction;
use kernel::id::OrganizationId;
use kernel::{DottedName, ResourceId};
use resource_catalog_domain::{Edge, EdgeFacts};

use super::StoreError;

const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('edges/' || $1::text || '/' || edge_type, 0))
FROM unnest($2::text[]) AS edge_type ORDER BY edge_type";

const FACTS: &str = "SELECT
    target.resource_type,
    (
        SELECT count(*)
        FROM edges AS arriving
        WHERE arriving.organization_id = $1 AND arriving.target = $3 AND arriving.edge_type = $2
            AND arriving.source <> $4 AND arriving.source_type = ANY ($5)
    ),
    EXISTS (
        WITH RECURSIVE reached AS (
            SELECT $3::text COLLATE \"C\" AS resource_id
            UNION
            SELECT onward.target
            FROM reached
            JOIN edges AS onward
                ON onward.organization_id = $1 AND onward.source = reached.resource_id AND onward.edge_type = $2
        )
        SELECT 1 FROM reached WHERE resource_id = $4
    )
FROM (SELECT 1) AS one
LEFT JOIN resources AS target ON target.organization_id = $1 AND target.resource_id = $3";

/// The facts of each of `edges`, which would leave `source`. `family` is the source's type and those derived from it.
///
/// # Errors
/// The database failed.
pub async fn gather(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    source: &ResourceId,
    family: &[String],
    edges: &[&Edge],
) -> Result<BTreeMap<Edge, EdgeFacts>, StoreError> {
    let mut facts = BTreeMap::new();
    if edges.is_empty() {
        return Ok(facts);
    }
    let mut edge_types: Vec<&str> = edges.iter().map(|e| e.edge_type.as_str()).collect();
    edge_types.sort_unstable();
    edge_types.dedup();
    let statement = transaction.prepare_cached(LOCK).await?;
    transaction
        .query(&statement, &[&organization.as_uuid().to_string(), &edge_types])
        .await?;
    let statement = transaction.prepare_cached(FACTS).await?;
    for edge in edges {
        let row = transaction
            .query_one(
                &statement,
                &[
                    &organization.as_uuid(),
                    &edge.edge_type.as_str(),
                    &edge.target.as_str(),
                    &source.as_str(),
                    &family,
                ],
            )
            .await?;
        let target_type: Option<String> = row.try_get(0)?;
        let target_type: Option<DottedName> = target_type
            .map(|t| t.parse().map_err(|e| StoreError::unreadable("resource type", e)))
            .transpose()?;
        let sources: i64 = row.try_get(1)?;
        let known = EdgeFacts {
            target_type,
            sources: u32::try_from(sources).unwrap_or(u32::MAX),
            reaches_source: row.try_get(2)?,
        };
        facts.insert((*edge).clone(), known);
    }
    Ok(facts)
}
