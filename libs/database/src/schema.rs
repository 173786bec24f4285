//! What a schema is, as text that can be compared: `schema.sql` of a service is this text, and a
//! test holds it against a freshly migrated database.

use sqlx::PgPool;

use crate::error::DatabaseError;

/// Describes every table, column, constraint, index, policy, grant, sequence, function, trigger,
/// view and enum of the schema `public`, one line each, in a fixed order. The migration ledger is
/// left out.
///
/// # Errors
/// The catalog cannot be read.
pub async fn schema_dump(pool: &PgPool) -> Result<String, DatabaseError> {
    let lines: Vec<String> = sqlx::query_scalar(include_str!("schema_dump.sql"))
        .fetch_all(pool)
        .await?;
    let mut text = String::new();
    for line in lines {
        // A table opens a paragraph.
        if line.starts_with("table ") && !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    Ok(text)
}
