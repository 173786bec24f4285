//! What a service may rely on from its database, on a real PostgreSQL.

mod provisioning;
mod schema;
mod scope;
mod url;

use database::{ServiceDatabase, testing::TestDatabase};

static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("tests/migrations");
const NOTEBOOK: ServiceDatabase = ServiceDatabase::new("notebook");

async fn notebook() -> TestDatabase {
    TestDatabase::create(NOTEBOOK, &MIGRATOR).await
}
