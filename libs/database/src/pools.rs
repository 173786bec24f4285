//! The two pools of one role on one database.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool, Postgres};
use tokio_postgres::NoTls;

use crate::error::DatabaseError;
use crate::org_transaction::OrgTransaction;
use crate::scope::Scope;
use crate::url::{DatabaseUrl, SessionSettings};

/// Sizes and times of the pools. The defaults are small: six roles share one server when embedded.
#[derive(Debug, Clone, Copy)]
pub struct PoolSizes {
    /// Most connections of the sqlx pool.
    pub sqlx: u32,
    /// Most connections of the tokio-postgres pool.
    pub hot: usize,
    /// How long a caller waits for a free connection.
    pub acquire_timeout: Duration,
    /// How long one statement may run.
    pub statement_timeout: Duration,
    /// How long a transaction may sit idle.
    pub idle_in_transaction_timeout: Duration,
}

impl Default for PoolSizes {
    fn default() -> Self {
        Self {
            sqlx: 4,
            hot: 6,
            acquire_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(15),
            idle_in_transaction_timeout: Duration::from_secs(60),
        }
    }
}

/// One role's access to one database, through both client libraries. Cheap to clone. Connections
/// are opened when first needed.
#[derive(Clone)]
pub struct Database {
    url: DatabaseUrl,
    sqlx: PgPool,
    hot: Pool,
}

impl Database {
    /// Prepares pools for `url`; `application` shows in `pg_stat_activity`.
    ///
    /// # Errors
    /// The pools cannot be built.
    pub fn open(url: &DatabaseUrl, application: &str, sizes: PoolSizes) -> Result<Self, DatabaseError> {
        let session = SessionSettings {
            statement_timeout: sizes.statement_timeout,
            idle_in_transaction_timeout: sizes.idle_in_transaction_timeout,
        };
        let sqlx = PgPoolOptions::new()
            .max_connections(sizes.sqlx.max(1))
            .acquire_timeout(sizes.acquire_timeout)
            .test_before_acquire(false)
            .connect_lazy_with(url.sqlx_options(application, session));
        let manager = Manager::from_config(
            url.postgres_config(application, session),
            NoTls,
            ManagerConfig {
                recycling_method: RecyclingMethod::Fast,
            },
        );
        let hot = Pool::builder(manager)
            .max_size(sizes.hot.max(1))
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(sizes.acquire_timeout),
                create: Some(sizes.acquire_timeout),
                recycle: Some(sizes.acquire_timeout),
            })
            .build()
            .map_err(|error| DatabaseError::Unavailable(Box::new(error)))?;
        Ok(Self {
            url: url.clone(),
            sqlx,
            hot,
        })
    }

    /// Where this is.
    #[must_use]
    pub const fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    /// The sqlx pool, for statements without an organization.
    #[must_use]
    pub const fn sqlx(&self) -> &PgPool {
        &self.sqlx
    }

    /// The tokio-postgres pool, for statements without an organization.
    #[must_use]
    pub const fn hot(&self) -> &Pool {
        &self.hot
    }

    /// Begins a transaction of sqlx in `scope`, in one round trip. Dropped, it rolls back.
    ///
    /// # Errors
    /// No connection, or the server refused.
    pub async fn begin(
        &self,
        scope: impl Into<Scope> + Send,
    ) -> Result<sqlx::Transaction<'static, Postgres>, DatabaseError> {
        // Built from a UUID's digits only.
        let begin = AssertSqlSafe(scope.into().begin_sql());
        Ok(self.sqlx.begin_with(begin).await?)
    }

    /// [`Database::begin`] for what matters only together with a later, synced commit, or repeats
    /// idempotent work when the server crashes and loses it: its commit does not wait for the disk.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub async fn begin_sqlx_unsynced(
        &self,
        scope: impl Into<Scope> + Send,
    ) -> Result<sqlx::Transaction<'static, Postgres>, DatabaseError> {
        // Built from a UUID's digits only.
        let begin = AssertSqlSafe(scope.into().begin_unsynced_sql());
        Ok(self.sqlx.begin_with(begin).await?)
    }

    /// Begins a transaction of tokio-postgres in `scope`, in one round trip. Dropped, it rolls back.
    ///
    /// # Errors
    /// No connection, or the server refused.
    pub async fn begin_hot(&self, scope: impl Into<Scope> + Send) -> Result<OrgTransaction, DatabaseError> {
        let transaction = self.begin_pipelined(scope).await?;
        transaction.begun().await?;
        Ok(transaction)
    }

    /// [`Database::begin_hot`] without a round trip of its own: the answer comes with that of the first
    /// statement. Read or lock first, ask [`OrgTransaction::begun`], and write then.
    ///
    /// # Errors
    /// No connection, or it was lost.
    pub async fn begin_pipelined(&self, scope: impl Into<Scope> + Send) -> Result<OrgTransaction, DatabaseError> {
        let begin = scope.into().begin_sql();
        OrgTransaction::begin(self.hot.get().await?, &begin).await
    }

    /// [`Database::begin_pipelined`] for what only repeats idempotent work when the server crashes and
    /// loses it: its commit does not wait for the disk.
    ///
    /// # Errors
    /// As [`Database::begin_pipelined`].
    pub async fn begin_unsynced(&self, scope: impl Into<Scope> + Send) -> Result<OrgTransaction, DatabaseError> {
        let begin = scope.into().begin_unsynced_sql();
        OrgTransaction::begin(self.hot.get().await?, &begin).await
    }

    /// Asks the server for a sign of life, for readiness.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        Ok(self.hot.get().await?.batch_execute("SELECT 1").await?)
    }

    /// Closes both pools; later use fails.
    pub async fn close(&self) {
        self.hot.close();
        self.sqlx.close().await;
    }
}

impl core::fmt::Debug for Database {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Database").field(&self.url).finish()
    }
}
