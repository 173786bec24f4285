//! What really is in the databases, read past the services and past row-level security.
//!
//! For what an API must not tell: that nothing of a secret was kept, that nothing was left behind.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::Deployment;
use crate::deployment::{PATIENCE, Role};

/// The databases of a deployment.
pub const DATABASES: [&str; 3] = ["resource_catalog", "control_plane", "execution_plane"];

impl Deployment {
    /// A connection of the superuser. The server must be up.
    pub async fn superuser(&self, database: &str) -> Client {
        self.try_superuser(database).await.expect("the server is up")
    }

    /// The same, if the server is up.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn try_superuser(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        let text = |key: &str| self.database[key].as_str().expect("the ready line tells it").to_owned();
        let port = self.database["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let password = std::fs::read_to_string(text("password_file")).expect("the superuser's password");
        let mut config = Config::new();
        config
            .host_path(Path::new(&text("sockets")))
            .port(port.expect("a port"));
        config.user("postgres").password(password.trim()).dbname(database);
        let (client, connection) = config.connect(NoTls).await?;
        // It ends with the client.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Waits until the server answers.
    pub async fn database_answers(&self) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.try_superuser("postgres").await {
            assert!(
                Instant::now() < deadline,
                "the database does not answer: {error:?}
{}",
                self.log(Role::Database)
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What a statement answers, row by row as text, asked by the superuser.
    pub async fn rows(&self, database: &str, statement: &str) -> Vec<Vec<Option<String>>> {
        let answer = self.superuser(database).await.simple_query(statement).await;
        let rows = answer.unwrap_or_else(|error| panic!("{database}: {statement}: {error:?}"));
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()),
            _ => None,
        };
        rows.into_iter().filter_map(row).collect()
    }

    /// The one number that a statement answers.
    pub async fn number(&self, database: &str, statement: &str) -> i64 {
        let rows = self.rows(database, statement).await;
        let first = rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
        first.unwrap_or_else(|| panic!("{statement}: no number in {rows:?}"))
    }
}
