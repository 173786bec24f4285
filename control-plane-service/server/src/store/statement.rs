//! Running a statement that is prepared once a connection.

use database::OrgTransaction;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Json, ToSql};

use super::StoreError;

pub type Parameter<'a> = &'a (dyn ToSql + Sync);

/// Runs a statement for its effect; answers with the number of rows.
pub async fn execute(tx: &OrgTransaction, sql: &str, parameters: &[Parameter<'_>]) -> Result<u64, StoreError> {
    let statement = tx.prepare_cached(sql).await?;
    Ok(tx.execute(&statement, parameters).await?)
}

/// Runs a statement for its rows.
pub async fn query(tx: &OrgTransaction, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, StoreError> {
    let statement = tx.prepare_cached(sql).await?;
    Ok(tx.query(&statement, parameters).await?)
}

/// A column, or why the row is not what it must be.
pub fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize, what: &'static str) -> Result<T, StoreError> {
    row.try_get(index)
        .map_err(|error| StoreError::corrupt(what)(Box::new(error)))
}

/// A column that holds a whole value as JSON.
pub fn body<T: DeserializeOwned>(row: &Row, index: usize, what: &'static str) -> Result<T, StoreError> {
    column::<Json<T>>(row, index, what).map(|Json(value)| value)
}

/// Every row's first column as a whole value.
pub fn bodies<T: DeserializeOwned>(rows: &[Row], what: &'static str) -> Result<Vec<T>, StoreError> {
    rows.iter().map(|row| body(row, 0, what)).collect()
}
