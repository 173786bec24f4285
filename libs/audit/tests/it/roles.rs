use database::Database;
use tokio_postgres::error::SqlState;

use crate::world::World;

async fn refused(database: &Database, world: &World, sql: &str) {
    let transaction = database.begin_hot(world.organization).await.unwrap();
    let error = transaction.batch_execute(sql).await.expect_err(sql);
    assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}");
}

#[tokio::test]
async fn neither_role_of_a_service_may_change_or_remove_facts_or_links() {
    let world = World::chained(2).await;
    for database in [&world.api, &world.worker] {
        for table in ["audit", "audit_chain"] {
            for sql in [
                format!("UPDATE {table} SET organization_id = organization_id"),
                format!("DELETE FROM {table}"),
                format!("TRUNCATE {table}"),
            ] {
                refused(database, &world, &sql).await;
            }
        }
    }
    world.verify().await.unwrap();
}

#[tokio::test]
async fn who_answers_requests_may_not_chain() {
    let world = World::chained(2).await;
    for sql in [
        "DELETE FROM audit_unchained",
        "INSERT INTO audit_unchained (organization_id, fact_id) VALUES (gen_random_uuid(), gen_random_uuid())",
        "UPDATE audit_heads SET sequence = 1",
        "INSERT INTO audit_chain SELECT * FROM audit_chain",
    ] {
        refused(&world.api, &world, sql).await;
    }
}
