//! Edges, a row each, to be followed both ways.

use std::collections::BTreeSet;

use database::OrgTransaction;
use kernel::id::OrganizationId;
use resource_catalog_domain::Edge;
use tokio_postgres::types::ToSql;

use super::StoreError;
use super::write::{Net, run};

const REMOVE_EDGES: &str = "DELETE FROM edges AS e
USING unnest($3::text[], $4::text[]) AS gone (edge_type, target)
WHERE e.organization_id = $1 AND e.source = $2 AND e.edge_type = gone.edge_type AND e.target = gone.target";

const ADD_EDGES: &str = "INSERT INTO edges (organization_id, source, edge_type, target, source_type)
SELECT $1, $2, edge_type, target, $5 FROM unnest($3::text[], $4::text[]) AS u (edge_type, target)";

/// Makes the rows follow the edges that leave each resource now.
///
/// # Errors
/// The database failed.
pub(super) async fn index(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    nets: &[Net<'_>],
) -> Result<(), StoreError> {
    let none = BTreeSet::new();
    for net in nets {
        let old = net.before.map_or(&none, |before| &before.edges);
        let columns = |edges: Vec<&Edge>| -> (Vec<String>, Vec<String>) {
            edges
                .into_iter()
                .map(|e| (e.edge_type.as_str().to_owned(), e.target.to_string()))
                .unzip()
        };
        let source = net.next.id.as_str();
        let (types, targets) = columns(old.difference(&net.next.edges).collect());
        if !types.is_empty() {
            let parameters: [&(dyn ToSql + Sync); 4] = [&organization.as_uuid(), &source, &types, &targets];
            run(transaction, REMOVE_EDGES, &parameters).await?;
        }
        let (types, targets) = columns(net.next.edges.difference(old).collect());
        if !types.is_empty() {
            let source_type = net.next.resource_type.as_str();
            let parameters: [&(dyn ToSql + Sync); 5] =
                [&organization.as_uuid(), &source, &types, &targets, &source_type];
            run(transaction, ADD_EDGES, &parameters).await?;
        }
    }
    Ok(())
}
