use database::{Database, DatabaseUrl, PoolSizes, Scope, testing};
use proptest::prelude::*;

#[test]
fn a_url_without_a_user_or_host_or_of_another_scheme_is_refused_without_being_quoted() {
    for bad in [
        "postgres://:hunter2@/x",
        "mysql://a:hunter2@b/c",
        "hunter2",
        "postgres://a:hunter2@h:port/x",
    ] {
        let error = bad.parse::<DatabaseUrl>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn both_spellings_of_a_unix_socket_mean_the_same() {
    let query: DatabaseUrl = "postgres://ada@/books?host=/run/db&port=5555".parse().unwrap();
    let host: DatabaseUrl = "postgres://ada@%2Frun%2Fdb:5555/books".parse().unwrap();
    assert_eq!(query, host);
    assert_eq!(query.expose(), "postgres://ada@%2Frun%2Fdb:5555/books");
}

#[tokio::test]
async fn a_unix_socket_works_for_both_libraries() {
    let tcp = Database::open(&testing::test_server(), "test", PoolSizes::default()).unwrap();
    let row = tcp
        .hot()
        .get()
        .await
        .unwrap()
        .query_one(
            "SELECT split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port')",
            &[],
        )
        .await
        .unwrap();
    let (directory, port): (String, String) = (row.get(0), row.get(1));
    let server = testing::test_server();
    let text = format!("postgres://{}@/postgres?host={directory}&port={port}", server.user());
    let url: DatabaseUrl = text.parse().unwrap();
    let url = url.with_user(server.user(), server.password());
    let socket = Database::open(&url, "test", PoolSizes::default()).unwrap();
    socket.ping().await.unwrap();
    let mut transaction = socket.begin(Scope::All).await.unwrap();
    let one: i32 = sqlx::query_scalar("SELECT 1")
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    assert_eq!(one, 1);
}

#[tokio::test]
async fn a_statement_that_runs_too_long_is_ended_in_both_libraries() {
    let sizes = PoolSizes {
        statement_timeout: std::time::Duration::from_millis(50),
        ..PoolSizes::default()
    };
    let database = Database::open(&testing::test_server(), "test", sizes).unwrap();
    let hot = database.begin_hot(Scope::All).await.unwrap();
    let error = hot.batch_execute("SELECT pg_sleep(60)").await.unwrap_err();
    assert_eq!(
        database::SqlState::of_postgres(&error),
        Some(database::SqlState::QueryCanceled)
    );
    let error = sqlx::query("SELECT pg_sleep(60)").execute(database.sqlx()).await;
    assert_eq!(
        database::SqlState::of_sqlx(&error.unwrap_err()),
        Some(database::SqlState::QueryCanceled)
    );
}

proptest! {
    #[test]
    fn what_is_exposed_reads_back_as_the_same(user in "[a-z/@: ]{1,8}", password in "\\PC{0,12}", name in "[a-z%?#]{1,8}") {
        let base: DatabaseUrl = "postgres://x@127.0.0.1:5432/y".parse().unwrap();
        let url = base.with_user(&user, Some(&password)).with_database(&name);
        prop_assert_eq!(url.expose().parse::<DatabaseUrl>().unwrap(), url);
    }
}
