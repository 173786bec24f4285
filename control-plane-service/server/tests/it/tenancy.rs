//! What another organization owns does not exist, whatever table it lies in and whatever a query forgets. The
//! tables are those that the database has, so that a new one cannot be forgotten here.

use control_plane_api::OperationState;
use database::ServiceRole;
use kernel::id::OrganizationId;
use tokio_postgres::Client;

use crate::plans::{Building, plan};
use crate::world::World;

/// Tables that hold nothing of any organization.
const OF_NOBODY: [&str; 4] = ["_sqlx_migrations", "feed_consumers", "feed_partitions", "feed_state"];
/// Where the worker finds work of all organizations, before it names one.
const OPEN_TO_THE_WORKER: [&str; 14] = [
    "audit",
    "audit_chain",
    "audit_heads",
    "audit_unchained",
    "content_deliveries",
    "effects",
    "feed",
    "idempotency_keys",
    "inbox",
    "outbox",
    "outbox_parked",
    "projection_cursors",
    "result_channels",
    "wakeups",
];

async fn names(client: &Client, sql: &str) -> Vec<String> {
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn tables(client: &Client) -> Vec<String> {
    let sql = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace \
        AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname";
    let all = names(client, sql).await;
    all.into_iter()
        .filter(|name| !OF_NOBODY.contains(&name.as_str()))
        .collect()
}

/// A world in which an operation was carried out.
async fn used() -> World {
    let world = World::start().await;
    let plan = plan(&[1]).job("check", &[]).update("tell", &["check"], "check", 1);
    let id = world.begin(plan).await;
    world.until_state(id, OperationState::Succeeded).await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_forces_row_level_security_by_the_organization() {
    let world = World::without_process().await;
    let superuser = world.database.open_superuser();
    let client = superuser.hot().get().await.unwrap();
    let forced = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace \
        AND relrowsecurity AND relforcerowsecurity ORDER BY relname";
    assert_eq!(tables(&client).await, names(&client, forced).await);
    let wide = "SELECT DISTINCT tablename::text FROM pg_policies WHERE schemaname = 'public' \
        AND coalesce(qual, with_check) NOT LIKE '%organization_id = (current_setting(''app.organization_id''%' \
        AND policyname <> 'figures' ORDER BY 1";
    assert_eq!(names(&client, wide).await, OPEN_TO_THE_WORKER);
    let wide_to_others = "SELECT tablename::text || ' ' || policyname FROM pg_policies WHERE schemaname = 'public' \
        AND coalesce(qual, with_check) NOT LIKE '%organization_id = (current_setting(''app.organization_id''%' \
        AND NOT roles = ARRAY['control_plane_worker'::name] AND policyname <> 'figures'";
    assert_eq!(names(&client, wide_to_others).await, Vec::<String>::new());
    // The owner serves nobody. It reads what is counted for the metrics, and the worker gets the counts.
    let counted = "SELECT tablename::text FROM pg_policies WHERE policyname = 'figures' \
        AND NOT (roles = ARRAY['control_plane_owner'::name] AND cmd = 'SELECT')";
    assert_eq!(names(&client, counted).await, Vec::<String>::new());
    let bypassing = "SELECT rolname::text FROM pg_roles WHERE rolname LIKE 'control\\_plane\\_%' \
        AND (rolbypassrls OR rolsuper)";
    assert_eq!(names(&client, bypassing).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_level_security_hides_what_a_query_might_forget() {
    let world = used().await;
    let superuser = world.database.open_superuser();
    let all = tables(&superuser.hot().get().await.unwrap()).await;
    for role in [ServiceRole::Api, ServiceRole::Worker] {
        let database = world.database.open(role);
        let theirs = database.begin_hot(OrganizationId::new_v7()).await.unwrap();
        for table in &all {
            let is_open = role == ServiceRole::Worker && OPEN_TO_THE_WORKER.contains(&table.as_str());
            // The api role only puts into the outbox.
            let is_shut = role == ServiceRole::Api && table.starts_with("outbox");
            if is_open || is_shut {
                continue;
            }
            let row = theirs.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await;
            let seen: i64 = row.unwrap().get(0);
            assert_eq!(seen, 0, "{table} as {role:?}");
        }
    }
    let api = world.database.open(ServiceRole::Api);
    let ours = api.begin_hot(world.organization).await.unwrap();
    let row = ours.query_one("SELECT count(*) FROM operations", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_writes_rows_of_another_organization() {
    let world = used().await;
    let api = world.database.open(ServiceRole::Api);
    let theirs = api.begin_hot(OrganizationId::new_v7()).await.unwrap();
    let touched = theirs
        .execute("UPDATE operations SET revision = revision + 1", &[])
        .await;
    assert_eq!(touched.unwrap(), 0);
    let audit = "INSERT INTO audit (id, organization_id, actor, action, subject, allowed, result, reason, detail) \
        VALUES (gen_random_uuid(), $1, 'person:eve', 'a', 'b', true, 'accepted', '', '{}')";
    let smuggled = theirs
        .execute(audit, &[&world.organization.as_uuid()])
        .await
        .unwrap_err();
    assert_eq!(smuggled.code().map(|code| code.code()), Some("42501"), "{smuggled:?}");
}
