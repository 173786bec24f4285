use std::collections::BTreeSet;
use std::path::Path;

use database::ServiceRole;
use database::testing::TestDatabase;
use execution_plane_server::{DATABASE, FAILPOINTS, MIGRATOR, openapi};

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.sql");
const DOCUMENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../openapi/execution-plane-service.json"
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
    // By way of a value, whose keys are sorted: the document's own maps have no order of their own.
    let document = serde_json::to_value(openapi().unwrap()).unwrap();
    let made = serde_json::to_string_pretty(&document).unwrap() + "\n";
    assert_committed(DOCUMENT, &made, "UPDATE_OPENAPI");
}

#[test]
fn the_migration_holds_the_outbox_as_it_is() {
    let first = MIGRATOR.iter().next().unwrap();
    assert!(first.sql.as_str().contains(outbox::TABLES));
}

#[test]
fn a_migration_holds_the_audit_as_it_is() {
    let holds = |text: &str| MIGRATOR.iter().any(|migration| migration.sql.as_str().contains(text));
    assert!(holds(audit::FACTS) && holds(audit::CHAIN));
}

#[test]
fn every_failpoint_is_in_the_code_and_the_other_way_round() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = failpoints::names_in_source(&source).unwrap();
    // The sequencer and the audit's chainer pass these for us.
    for task in ["sequence", "audit_chain"] {
        found.extend(["before_commit", "after_commit"].map(|when| format!("execution_plane.{task}.{when}")));
    }
    let declared: BTreeSet<String> = FAILPOINTS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(found, declared);
}
