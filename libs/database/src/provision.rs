//! Making a service's database and roles, again and again without harm.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio_postgres::{Client, NoTls};

use crate::error::DatabaseError;
use crate::service::{ServiceDatabase, ServiceRole, ServiceUrls};
use crate::url::{DatabaseUrl, NOBODY, SessionSettings};

/// The key of the advisory lock that provisioning holds: those who provision at once take turns.
const LOCK: i64 = 0x706c_6174_666f_726d;

/// Passwords for the three roles; `None` where the server asks for none (peer or trust on a
/// private socket). They reach the server as SCRAM verifiers, never as text.
#[derive(Debug, Clone, Default)]
pub struct RolePasswords {
    /// Of `<service>_owner`.
    pub owner: Option<SecretString>,
    /// Of `<service>_api`.
    pub api: Option<SecretString>,
    /// Of `<service>_worker`.
    pub worker: Option<SecretString>,
}

impl RolePasswords {
    fn of(&self, role: ServiceRole) -> Option<&str> {
        let password = match role {
            ServiceRole::Owner => &self.owner,
            ServiceRole::Api => &self.api,
            ServiceRole::Worker => &self.worker,
        };
        password.as_ref().map(|password| password.expose_secret())
    }
}

/// Creates the service's roles and its database where they are missing, sets the passwords, and
/// shuts everyone else out. Returns the URLs of the three roles on the same server.
///
/// # Errors
/// The server cannot be reached as superuser, is too old, or refuses.
pub async fn provision(
    superuser: &DatabaseUrl,
    service: ServiceDatabase,
    passwords: &RolePasswords,
) -> Result<ServiceUrls, DatabaseError> {
    provision_named(superuser, service, service.name(), passwords).await
}

/// [`provision`] with another name for the database.
///
/// # Errors
/// As [`provision`].
pub async fn provision_named(
    superuser: &DatabaseUrl,
    service: ServiceDatabase,
    database: &str,
    passwords: &RolePasswords,
) -> Result<ServiceUrls, DatabaseError> {
    let client = connect(superuser).await?;
    require_version(&client).await?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    let made = make(&client, service, database, passwords).await;
    // The lock would end with the connection as well.
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await?;
    made?;
    Ok(urls(superuser, service, database, passwords))
}

/// A connection of its own, outside any pool.
pub(crate) async fn connect(url: &DatabaseUrl) -> Result<Client, DatabaseError> {
    let session = SessionSettings {
        statement_timeout: Duration::ZERO,
        idle_in_transaction_timeout: Duration::ZERO,
    };
    let (client, connection) = url
        .postgres_config("provision", session)
        .connect(NoTls)
        .await
        .map_err(|error| DatabaseError::Unavailable(Box::new(error)))?;
    // Ends when the client is dropped; its errors reach the client's own calls.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}

async fn require_version(client: &Client) -> Result<(), DatabaseError> {
    let row = client
        .query_one("SELECT current_setting('server_version_num')::int", &[])
        .await?;
    let found: i32 = row.get(0);
    if found < 150_000 {
        return Err(DatabaseError::TooOld { found });
    }
    Ok(())
}

async fn make(
    client: &Client,
    service: ServiceDatabase,
    database: &str,
    passwords: &RolePasswords,
) -> Result<(), DatabaseError> {
    for role in ServiceRole::ALL {
        make_role(client, &service.role(role), passwords.of(role)).await?;
    }
    let exists = client
        .query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&database])
        .await?
        .is_some();
    if !exists {
        let owner = service.role(ServiceRole::Owner);
        let create = format!("CREATE DATABASE {} OWNER {owner}", quoted(database));
        client.batch_execute(&create).await?;
    }
    shut_out_others(client, service, database).await
}

/// Only the service's own roles may connect. Database grants are not copied from a template.
pub(crate) async fn shut_out_others(
    client: &Client,
    service: ServiceDatabase,
    database: &str,
) -> Result<(), DatabaseError> {
    let database = quoted(database);
    let api = service.role(ServiceRole::Api);
    let worker = service.role(ServiceRole::Worker);
    let grants = format!(
        "REVOKE ALL ON DATABASE {database} FROM PUBLIC; GRANT CONNECT ON DATABASE {database} TO {api}, {worker}"
    );
    Ok(client.batch_execute(&grants).await?)
}

async fn make_role(client: &Client, role: &str, password: Option<&str>) -> Result<(), DatabaseError> {
    let exists = client
        .query_opt("SELECT 1 FROM pg_roles WHERE rolname = $1", &[&role])
        .await?
        .is_some();
    if !exists {
        client.batch_execute(&format!("CREATE ROLE {role}")).await?;
    }
    // Said again each time: a role that was loosened by hand is tightened.
    let tighten = format!(
        "ALTER ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS; \
         ALTER ROLE {role} SET app.organization_id = '{NOBODY}'"
    );
    client.batch_execute(&tighten).await?;
    if let Some(password) = password {
        let verifier = postgres_protocol::password::scram_sha_256(password.as_bytes());
        // A SCRAM verifier is base64 and punctuation, without quotes.
        client
            .batch_execute(&format!("ALTER ROLE {role} PASSWORD '{verifier}'"))
            .await?;
    }
    Ok(())
}

pub(crate) fn urls(
    superuser: &DatabaseUrl,
    service: ServiceDatabase,
    database: &str,
    passwords: &RolePasswords,
) -> ServiceUrls {
    let of = |role| {
        superuser
            .with_database(database)
            .with_user(&service.role(role), passwords.of(role))
    };
    ServiceUrls {
        owner: of(ServiceRole::Owner),
        api: of(ServiceRole::Api),
        worker: of(ServiceRole::Worker),
    }
}

pub(crate) fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}
