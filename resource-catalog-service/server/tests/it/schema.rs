use database::ServiceRole;
use database::testing::TestDatabase;
use resource_catalog_server::{DATABASE, MIGRATOR, openapi_document};

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.sql");
const DOCUMENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../openapi/resource-catalog-service.json"
);

/// Compares a committed file with what the code makes; with the variable set, writes it instead.
fn assert_committed(path: &str, made: &str, variable: &str) {
    if std::env::var_os(variable).is_some() {
        std::fs::write(path, made).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == made,
        "{path} is not what the code makes; run this test again with {variable}=1 and commit the file"
    );
}

#[tokio::test]
async fn the_committed_schema_is_what_the_migrations_make() {
    let database = TestDatabase::create(DATABASE, &MIGRATOR).await;
    let owner = database.open(ServiceRole::Owner);
    let made = database::schema_dump(owner.sqlx()).await.unwrap();
    assert_committed(SCHEMA, &made, "UPDATE_SCHEMA");
}

#[test]
fn the_committed_openapi_document_is_what_the_code_makes() {
    assert_committed(DOCUMENT, &openapi_document(), "UPDATE_OPENAPI");
}

#[test]
fn the_migration_holds_the_shared_tables_as_they_are() {
    let first = MIGRATOR.iter().next().unwrap();
    assert!(first.sql.as_str().contains(outbox::TABLES));
}

#[test]
fn a_migration_holds_the_audit_as_it_is() {
    let holds = |text: &str| MIGRATOR.iter().any(|migration| migration.sql.as_str().contains(text));
    assert!(holds(audit::FACTS) && holds(audit::CHAIN));
}
