use database::{Database, PoolSizes, RolePasswords, ServiceDatabase, ServiceRole, provision_named, testing};
use futures::future::try_join_all;
use kernel::id::OrganizationId;

use crate::{MIGRATOR, NOTEBOOK, notebook};

/// Removes a database that a test provisioned by itself.
async fn remove(name: &str) {
    let superuser = Database::open(&testing::test_server(), "test", PoolSizes::default()).unwrap();
    let drop_it = format!("DROP DATABASE \"{name}\" WITH (FORCE)");
    superuser
        .hot()
        .get()
        .await
        .unwrap()
        .batch_execute(&drop_it)
        .await
        .unwrap();
}

#[tokio::test]
async fn provisioning_is_safe_when_many_do_it_at_once_and_again() {
    let server = testing::test_server();
    let name = format!("provision_{}", uuid::Uuid::new_v4().simple());
    // As the other tests have it: roles belong to the whole server, and so do their passwords.
    let password = server.password().map(secrecy::SecretString::from);
    let passwords = RolePasswords {
        owner: password.clone(),
        api: password.clone(),
        worker: password,
    };
    let all = (0..6).map(|_| provision_named(&server, NOTEBOOK, &name, &passwords));
    let urls = try_join_all(all).await.unwrap();
    // Whoever starts next migrates too: one applies, the others wait and find it done.
    try_join_all((0..4).map(|_| database::migrate(&urls[0].owner, &MIGRATOR)))
        .await
        .unwrap();
    let api = Database::open(&urls[3].api, "test", PoolSizes::default()).unwrap();
    api.ping().await.unwrap();
    api.close().await;
    remove(&name).await;
}

#[tokio::test]
async fn a_role_that_was_loosened_by_hand_is_tightened_again() {
    const LOOSE: ServiceDatabase = ServiceDatabase::new("loosened");
    let server = testing::test_server();
    let name = format!("loosened_{}", uuid::Uuid::new_v4().simple());
    provision_named(&server, LOOSE, &name, &RolePasswords::default())
        .await
        .unwrap();
    let superuser = Database::open(&server, "test", PoolSizes::default()).unwrap();
    let client = superuser.hot().get().await.unwrap();
    client
        .batch_execute("ALTER ROLE loosened_api BYPASSRLS CREATEDB")
        .await
        .unwrap();

    provision_named(&server, LOOSE, &name, &RolePasswords::default())
        .await
        .unwrap();

    let row = client
        .query_one(
            "SELECT bool_or(rolbypassrls OR rolcreatedb OR rolsuper) FROM pg_roles WHERE rolname LIKE 'loosened%'",
            &[],
        )
        .await
        .unwrap();
    assert!(!row.get::<_, bool>(0));
    remove(&name).await;
}

#[tokio::test]
async fn one_services_roles_cannot_connect_to_anothers_database() {
    const OTHER: ServiceDatabase = ServiceDatabase::new("stranger");
    let test = notebook().await;
    let name = format!("stranger_{}", uuid::Uuid::new_v4().simple());
    let strangers = provision_named(&testing::test_server(), OTHER, &name, &RolePasswords::default())
        .await
        .unwrap();
    for url in [&strangers.owner, &strangers.api, &strangers.worker] {
        let across = url.with_database(test.urls().api.database());
        let pool = Database::open(&across, "test", PoolSizes::default()).unwrap();
        assert!(pool.ping().await.is_err(), "{across:?} must be shut out");
    }
    remove(&name).await;
}

#[tokio::test]
async fn a_password_reaches_the_server_as_a_verifier_only() {
    const SECRETIVE: ServiceDatabase = ServiceDatabase::new("secretive");
    let name = format!("secretive_{}", uuid::Uuid::new_v4().simple());
    let canary = uuid::Uuid::new_v4().to_string();
    let passwords = RolePasswords {
        api: Some(canary.clone().into()),
        ..RolePasswords::default()
    };
    let server = testing::test_server();
    let urls = provision_named(&server, SECRETIVE, &name, &passwords).await.unwrap();

    let superuser = Database::open(&server, "test", PoolSizes::default()).unwrap();
    let client = superuser.hot().get().await.unwrap();
    let stored: String = client
        .query_one("SELECT rolpassword FROM pg_authid WHERE rolname = 'secretive_api'", &[])
        .await
        .unwrap()
        .get(0);
    assert!(stored.starts_with("SCRAM-SHA-256$"), "{stored}");
    assert!(urls.api.expose().contains(&canary));
    assert!(!format!("{urls:?} {passwords:?}").contains(&canary));
    remove(&name).await;
}

#[tokio::test]
async fn each_test_has_a_database_of_its_own_that_later_ones_drop_once_it_has_ended() {
    let (one, two) = tokio::join!(notebook(), notebook());
    let names = [&one, &two].map(|test| test.urls().api.database().to_owned());
    assert_ne!(names[0], names[1]);
    // A connection that somebody forgot holds nothing up.
    let open = one.open(ServiceRole::Api);
    let held = open.begin_hot(OrganizationId::new_v7()).await.unwrap();
    drop(one);
    let superuser = two.open_superuser();
    let exists = async |name: &str| {
        let client = superuser.hot().get().await.unwrap();
        let sql = "SELECT 1 FROM pg_database WHERE datname = $1";
        client.query_opt(sql, &[&name]).await.unwrap().is_some()
    };
    let mut later = 0;
    while exists(&names[0]).await {
        later += 1;
        assert!(later < 100, "it is still there");
        drop(notebook().await);
    }
    assert!(exists(&names[1]).await);
    drop(held);
}
