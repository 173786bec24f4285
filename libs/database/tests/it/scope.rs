use database::{Database, Scope, ServiceRole, SqlState};
use futures::future::try_join;
use kernel::id::OrganizationId;

use crate::notebook;

async fn write(database: &Database, organization: OrganizationId, body: &str) {
    let transaction = database.begin_hot(organization).await.unwrap();
    transaction
        .execute(
            "INSERT INTO notes (organization_id, body) VALUES ($1, $2)",
            &[&organization.as_uuid(), &body],
        )
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

async fn bodies_sqlx(database: &Database, scope: Scope) -> Vec<String> {
    let mut transaction = database.begin(scope).await.unwrap();
    sqlx::query_scalar("SELECT body FROM notes ORDER BY body")
        .fetch_all(&mut *transaction)
        .await
        .unwrap()
}

async fn bodies_hot(database: &Database, scope: Scope) -> Vec<String> {
    let transaction = database.begin_hot(scope).await.unwrap();
    let rows = transaction.query("SELECT body FROM notes ORDER BY body", &[]).await;
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_transaction_sees_its_own_organizations_rows_and_no_others() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    let (ours, theirs) = (OrganizationId::new_v7(), OrganizationId::new_v7());
    write(&api, ours, "ours").await;
    write(&api, theirs, "theirs").await;

    assert_eq!(bodies_sqlx(&api, ours.into()).await, ["ours"]);
    assert_eq!(bodies_hot(&api, theirs.into()).await, ["theirs"]);
}

#[tokio::test]
async fn the_scope_ends_with_the_transaction_and_without_one_nothing_is_seen() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    write(&api, OrganizationId::new_v7(), "ours").await;

    // The same pooled connections, where a scope was set before: no row, and no error either.
    assert!(bodies_hot(&api, Scope::All).await.is_empty());
    assert!(bodies_sqlx(&api, Scope::All).await.is_empty());
    let row = api.hot().get().await.unwrap().query("SELECT 1 FROM notes", &[]).await;
    assert!(row.unwrap().is_empty());
}

#[tokio::test]
async fn a_row_of_another_organization_cannot_be_written() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    let transaction = api.begin_hot(OrganizationId::new_v7()).await.unwrap();
    let stranger = OrganizationId::new_v7().as_uuid();
    let error = transaction
        .execute(
            "INSERT INTO notes (organization_id, body) VALUES ($1, 'x')",
            &[&stranger],
        )
        .await
        .unwrap_err();
    assert_eq!(SqlState::of_postgres(&error), Some(SqlState::InsufficientPrivilege));
}

#[tokio::test]
async fn even_the_owner_is_bound_by_row_level_security() {
    let test = notebook().await;
    write(&test.open(ServiceRole::Api), OrganizationId::new_v7(), "ours").await;
    assert!(bodies_hot(&test.open(ServiceRole::Owner), Scope::All).await.is_empty());
}

#[tokio::test]
async fn a_worker_sees_all_organizations_where_a_policy_says_so_and_then_acts_for_one() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    let ours = OrganizationId::new_v7();
    write(&api, ours, "a").await;
    write(&api, OrganizationId::new_v7(), "b").await;

    let worker = test.open(ServiceRole::Worker);
    assert_eq!(bodies_hot(&worker, Scope::All).await, ["a", "b"]);
    let transaction = worker.begin_hot(Scope::All).await.unwrap();
    let insert = transaction
        .prepare_cached("INSERT INTO notes (organization_id, body) VALUES ($1, 'c')")
        .await
        .unwrap();
    let uuid = ours.as_uuid();
    let insert = async { Ok(transaction.execute(&insert, &[&uuid]).await?) };
    try_join(transaction.act_for(ours), insert).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(bodies_hot(&api, ours.into()).await, ["a", "c"]);
}

#[tokio::test]
async fn a_dropped_transaction_leaves_nothing_behind_and_its_connection_is_usable_again() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    let ours = OrganizationId::new_v7();
    let insert = "INSERT INTO notes (organization_id, body) VALUES ($1, 'x')";
    // More often than the pool has connections: a leaked one would be missed.
    for _ in 0..20 {
        let transaction = api.begin_hot(ours).await.unwrap();
        transaction.execute(insert, &[&ours.as_uuid()]).await.unwrap();
        drop(transaction);
        let mut transaction = api.begin(ours).await.unwrap();
        sqlx::query(insert)
            .bind(ours.as_uuid())
            .execute(&mut *transaction)
            .await
            .unwrap();
    }
    assert!(bodies_hot(&api, ours.into()).await.is_empty());
}

#[tokio::test]
async fn a_begin_that_is_given_up_midway_leaves_no_open_transaction_in_the_pool() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    let ours = OrganizationId::new_v7();
    for _ in 0..20 {
        // Polled once: the message is sent, the answer is not awaited.
        let begun = api.begin_hot(ours);
        futures::pin_mut!(begun);
        let _ = futures::poll!(&mut begun);
    }
    let superuser = test.open_superuser();
    write(&api, ours, "x").await;
    assert_eq!(bodies_hot(&superuser, Scope::All).await, ["x"]);
}

#[tokio::test]
async fn a_pipelined_transaction_is_begun_in_its_scope_before_its_first_statement() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    let ours = OrganizationId::new_v7();
    write(&api, ours, "a").await;
    write(&api, OrganizationId::new_v7(), "b").await;
    for begun in [api.begin_pipelined(ours).await, api.begin_unsynced(ours).await] {
        let transaction = begun.unwrap();
        let rows = transaction.query("SELECT body FROM notes", &[]).await.unwrap();
        assert_eq!(rows.len(), 1);
        transaction.begun().await.unwrap();
        let insert = "INSERT INTO notes (organization_id, body) VALUES ($1, 'undone')";
        transaction.execute(insert, &[&ours.as_uuid()]).await.unwrap();
        transaction.rollback().await.unwrap();
        assert_eq!(bodies_hot(&api, ours.into()).await, ["a"]);
    }
}

#[tokio::test]
async fn a_transaction_that_could_not_begin_is_not_committed() {
    let test = notebook().await;
    let superuser = test.open_superuser();
    let api = test.open(ServiceRole::Api);
    drop(api.begin_hot(Scope::All).await.unwrap());
    let transaction = api.begin_pipelined(OrganizationId::new_v7()).await.unwrap();
    write_off(&superuser).await;
    transaction.begun().await.ok();
    transaction.commit().await.unwrap_err();
}

/// Ends every connection of the api role to this database.
async fn write_off(superuser: &Database) {
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename LIKE '%\\_api'";
    superuser.hot().get().await.unwrap().batch_execute(end).await.unwrap();
}

#[tokio::test]
async fn an_unsynced_commit_is_seen_by_everyone_like_any_other() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    let ours = OrganizationId::new_v7();
    let transaction = api.begin_unsynced(ours).await.unwrap();
    let insert = "INSERT INTO notes (organization_id, body) VALUES ($1, 'x')";
    transaction.execute(insert, &[&ours.as_uuid()]).await.unwrap();
    let row = transaction.query_one("SHOW synchronous_commit", &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "off");
    transaction.commit().await.unwrap();
    assert_eq!(bodies_hot(&api, ours.into()).await, ["x"]);
}

#[tokio::test]
async fn both_libraries_tell_the_violated_constraint_by_name() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    let ours = OrganizationId::new_v7();
    let insert = "INSERT INTO notes (organization_id, body) VALUES ($1, '')";

    let hot = api.begin_hot(ours).await.unwrap();
    let error: database::DatabaseError = hot.execute(insert, &[&ours.as_uuid()]).await.unwrap_err().into();
    assert_eq!(error.sql_state(), Some(SqlState::CheckViolation));
    assert_eq!(error.constraint(), Some("notes_body_check"));

    let mut slow = api.begin(ours).await.unwrap();
    let error = sqlx::query(insert).bind(ours.as_uuid()).execute(&mut *slow).await;
    let error: database::DatabaseError = error.unwrap_err().into();
    assert_eq!(error.constraint(), Some("notes_body_check"));
}

#[tokio::test]
async fn a_commit_after_a_failed_statement_is_an_error_and_never_a_silent_roll_back() {
    let test = notebook().await;
    let api = test.open(ServiceRole::Api);
    let ours = OrganizationId::new_v7();
    let transaction = api.begin_hot(ours).await.unwrap();
    let insert = "INSERT INTO notes (organization_id, body) VALUES ($1, $2)";
    transaction.execute(insert, &[&ours.as_uuid(), &"kept?"]).await.unwrap();
    transaction.execute(insert, &[&ours.as_uuid(), &""]).await.unwrap_err();
    transaction.commit().await.unwrap_err();
    assert!(bodies_hot(&api, ours.into()).await.is_empty());
}
