//! Every resource of an organization and the revision they were true at, by one statement and so by one snapshot.

use database::Database;
use futures::{Stream, StreamExt as _, pin_mut};
use kernel::id::OrganizationId;
use resource_catalog_domain::Resource;

use super::StoreError;
use super::row::{COLUMNS, ResourceRow};

/// A snapshot, part by part.
#[derive(Debug)]
pub enum Part {
    /// First, and once.
    Head(i64),
    Resource(Box<Resource>),
}

/// Streams the snapshot; it takes as long as its reader does, and memory for a few rows.
pub fn stream(database: Database, organization: OrganizationId) -> impl Stream<Item = Result<Part, StoreError>> + Send {
    async_stream::try_stream! {
        let transaction = database.begin_hot(organization).await?;
        transaction.batch_execute("SET LOCAL statement_timeout = 0").await?;
        let sql = format!(
            "SELECT s.head, {COLUMNS} FROM feed_state AS s
             LEFT JOIN resources AS r ON r.organization_id = $1 ORDER BY r.resource_id"
        );
        let rows = transaction.query_raw(&sql, [organization.as_uuid()]).await?;
        pin_mut!(rows);
        let mut began = false;
        while let Some(row) = rows.next().await {
            let row = row?;
            if !began {
                began = true;
                yield Part::Head(row.try_get(0)?);
            }
            if row.try_get::<_, Option<&str>>(2)?.is_some() {
                yield Part::Resource(Box::new(ResourceRow::from_hot(&row, 1)?.into_resource()?));
            }
        }
    }
}
