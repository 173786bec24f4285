//! Databases for tests: each test gets a fresh one, copied from a template that was migrated once
//! for each set of migrations.
//!
//! A test does not drop its own. `DROP DATABASE` waits until every backend of the server has taken notice,
//! and one that is just logging in takes notice only once its client has answered; a test that waits for the
//! drop keeps its own clients from answering, until `authentication_timeout` ends them a minute later. So a
//! database is let go by a lock that ends with the test, however that ends, and whoever makes the next one
//! first drops what nobody holds any more.
//!
//! The server is named by the environment variable `PLATFORM_TEST_POSTGRES` (a superuser's URL).

use std::hash::{DefaultHasher, Hash, Hasher};

use secrecy::SecretString;
use sqlx::migrate::Migrator;
use tokio_postgres::Client;

use crate::error::DatabaseError;
use crate::migrate::migrate;
use crate::pools::{Database, PoolSizes};
use crate::provision::{RolePasswords, connect, provision_named, quoted, shut_out_others, urls};
use crate::service::{ServiceDatabase, ServiceRole, ServiceUrls};
use crate::url::DatabaseUrl;

/// Names the server for tests.
pub const TEST_SERVER: &str = "PLATFORM_TEST_POSTGRES";

/// Bumped when provisioning changes, so that older templates are not used any more.
const TEMPLATE_FORM: u32 = 1;
/// What the names of tests' databases begin with, and no other's.
const PREFIX: &str = "platform_test_";

/// A database of its own for one test, until the value is dropped.
#[derive(Debug)]
pub struct TestDatabase {
    /// Holds the lock that says that the database is in use.
    _holder: Client,
    superuser: DatabaseUrl,
    name: String,
    urls: ServiceUrls,
}

/// The superuser's URL of the server for tests.
///
/// # Panics
/// When the environment variable is not set or not a URL: tests need a real PostgreSQL.
#[must_use]
pub fn test_server() -> DatabaseUrl {
    let url = std::env::var(TEST_SERVER).unwrap_or_else(|_| {
        panic!(
            "these tests need a PostgreSQL server: run them by `make test`, or set {TEST_SERVER} to a \
             superuser's URL like postgres://postgres@127.0.0.1:5432/postgres"
        )
    });
    url.parse()
        .unwrap_or_else(|error| panic!("{TEST_SERVER} cannot be used: {error}"))
}

impl TestDatabase {
    /// A fresh database of `service`, migrated by `migrator`.
    ///
    /// # Panics
    /// When there is no server for tests or it refuses.
    pub async fn create(service: ServiceDatabase, migrator: &Migrator) -> Self {
        let superuser = test_server();
        Self::try_create(&superuser, service, migrator)
            .await
            .unwrap_or_else(|error| panic!("no database for the test: {}", kernel::with_causes(&error)))
    }

    async fn try_create(
        superuser: &DatabaseUrl,
        service: ServiceDatabase,
        migrator: &Migrator,
    ) -> Result<Self, DatabaseError> {
        let passwords = passwords_like(superuser);
        let template = template_name(service, migrator);
        let client = connect(superuser).await?;
        if !is_ready(&client, &template).await? {
            make_template(&client, superuser, service, &template, &passwords, migrator).await?;
        }
        drop_let_go(&client).await?;
        let name = format!("{PREFIX}{}_{}", service.name(), uuid::Uuid::new_v4().simple());
        lock(&client, &name).await?;
        let create = format!(
            "CREATE DATABASE {} TEMPLATE {} OWNER {}",
            quoted(&name),
            quoted(&template),
            service.role(ServiceRole::Owner)
        );
        client.batch_execute(&create).await?;
        shut_out_others(&client, service, &name).await?;
        Ok(Self {
            _holder: client,
            superuser: superuser.clone(),
            urls: urls(superuser, service, &name, &passwords),
            name,
        })
    }

    /// The URLs of the three roles.
    #[must_use]
    pub const fn urls(&self) -> &ServiceUrls {
        &self.urls
    }

    /// The superuser's URL of this database: sees everything, for assertions and faults only.
    #[must_use]
    pub fn superuser(&self) -> DatabaseUrl {
        self.superuser.with_database(&self.name)
    }

    /// Pools of `role` with the default sizes.
    ///
    /// # Panics
    /// When the pools cannot be built.
    #[must_use]
    pub fn open(&self, role: ServiceRole) -> Database {
        Database::open(self.urls.of(role), "test", PoolSizes::default()).expect("pools can be built")
    }

    /// Pools of the superuser, whom row-level security does not bind.
    ///
    /// # Panics
    /// When the pools cannot be built.
    #[must_use]
    pub fn open_superuser(&self) -> Database {
        Database::open(&self.superuser(), "test", PoolSizes::default()).expect("pools can be built")
    }
}

/// Drops the databases of tests that have ended.
async fn drop_let_go(client: &Client) -> Result<(), DatabaseError> {
    let rows = client
        .query(
            "SELECT datname FROM pg_database WHERE starts_with(datname, $1)",
            &[&PREFIX],
        )
        .await?;
    for row in rows {
        let name: &str = row.get(0);
        if try_lock(client, name).await? {
            // Another may have dropped it since the list was read.
            let drop_it = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(name));
            client.batch_execute(&drop_it).await?;
            unlock(client, name).await?;
        }
    }
    Ok(())
}

async fn lock(client: &Client, name: &str) -> Result<(), DatabaseError> {
    client
        .execute("SELECT pg_advisory_lock(hashtextextended($1, 0))", &[&name])
        .await?;
    Ok(())
}

async fn try_lock(client: &Client, name: &str) -> Result<bool, DatabaseError> {
    let row = client
        .query_one("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", &[&name])
        .await?;
    Ok(row.get(0))
}

async fn unlock(client: &Client, name: &str) -> Result<(), DatabaseError> {
    client
        .execute("SELECT pg_advisory_unlock(hashtextextended($1, 0))", &[&name])
        .await?;
    Ok(())
}

/// Where the superuser needs a password the roles get the same: the server is the tests' own.
fn passwords_like(superuser: &DatabaseUrl) -> RolePasswords {
    let password = superuser.password().map(SecretString::from);
    RolePasswords {
        owner: password.clone(),
        api: password.clone(),
        worker: password,
    }
}

fn template_name(service: ServiceDatabase, migrator: &Migrator) -> String {
    let mut hasher = DefaultHasher::new();
    TEMPLATE_FORM.hash(&mut hasher);
    for migration in migrator.iter() {
        migration.version.hash(&mut hasher);
        migration.checksum.hash(&mut hasher);
    }
    format!("tpl_{}_{:016x}", service.name(), hasher.finish())
}

/// Whether the template is whole: the flag is set as the last step of making it.
async fn is_ready(client: &Client, template: &str) -> Result<bool, DatabaseError> {
    let row = client
        .query_opt(
            "SELECT 1 FROM pg_database WHERE datname = $1 AND datistemplate",
            &[&template],
        )
        .await?;
    Ok(row.is_some())
}

async fn make_template(
    client: &Client,
    superuser: &DatabaseUrl,
    service: ServiceDatabase,
    template: &str,
    passwords: &RolePasswords,
    migrator: &Migrator,
) -> Result<(), DatabaseError> {
    lock(client, template).await?;
    if !is_ready(client, template).await? {
        // Left by a test that was killed midway.
        let half_made = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(template));
        client.batch_execute(&half_made).await?;
        let urls = provision_named(superuser, service, template, passwords).await?;
        migrate(&urls.owner, migrator).await?;
        wait_until_unused(client, template).await?;
        let finished = format!("ALTER DATABASE {} IS_TEMPLATE true", quoted(template));
        client.batch_execute(&finished).await?;
    }
    unlock(client, template).await
}

/// Sends everybody away who is connected: a template with a connection on it cannot be copied, and the
/// migration's own lasts a moment.
async fn wait_until_unused(client: &Client, name: &str) -> Result<(), DatabaseError> {
    client
        .execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1",
            &[&name],
        )
        .await?;
    Ok(())
}
