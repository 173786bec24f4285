//! Synced commits, counted by PostgreSQL itself.

use serde_json::Value;
use tokio_postgres::NoTls;

/// A superuser's connection to the private database.
pub struct Counter {
    client: tokio_postgres::Client,
    pub url: String,
}

impl Counter {
    /// Connects to the database that a deployment told of.
    pub async fn connect(database: &Value) -> Self {
        let file = database["password_file"].as_str().expect("a password file");
        let password = std::fs::read_to_string(file).expect("own file").trim().to_owned();
        let sockets = database["sockets"].as_str().expect("a directory");
        let port = database["port"].as_u64().expect("a port");
        let parameters = format!("host={sockets} port={port} user=postgres password={password} dbname=postgres");
        let (client, connection) = tokio_postgres::connect(&parameters, NoTls)
            .await
            .expect("the database answers");
        tokio::spawn(connection);
        let encoded = sockets.replace('/', "%2F");
        let url = format!("postgresql://postgres:{password}@/postgres?host={encoded}&port={port}");
        Self { client, url }
    }

    /// Syncs of the write-ahead log so far, by all of the server.
    pub async fn syncs(&self) -> f64 {
        // The statistics of this session are flushed by themselves within a second; those of others too.
        tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
        let row = self
            .client
            .query_one("SELECT wal_sync FROM pg_stat_wal", &[])
            .await
            .expect("statistics");
        row.get::<_, i64>(0) as f64
    }

    /// The server's version.
    pub async fn version(&self) -> String {
        let row = self.client.query_one("SHOW server_version", &[]).await;
        row.expect("the server tells its version").get(0)
    }

    /// Runs a statement of the benchmark's own.
    pub async fn run(&self, statement: &str) {
        self.client.batch_execute(statement).await.expect("the statement runs");
    }
}
