//! Brings pack content to execution-plane: owed since the pack was published, tried until it is there.
//!
//! Several processes may do this at once: a debt is taken by moving its due time, and delivering twice is
//! harmless because content is addressed by its digest.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::TimeDelta;
use client_kit::Client;
use control_plane_ports::runtime::backoff;
use database::{Database, DatabaseError, Scope};
use execution_plane_api::ExecutionPlane;
use kernel::Sha256Digest;
use kernel::id::OrganizationId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{library, store};
use crate::points;

/// How long a taken debt is left to who took it.
const TAKEN_FOR: TimeDelta = TimeDelta::seconds(60);
const SWEEP: Duration = Duration::from_secs(1);

/// Delivers content.
pub struct Delivery {
    database: Database,
    execution: Client,
    woken: Notify,
}

struct Debt {
    organization: OrganizationId,
    sha256: Sha256Digest,
    pack: String,
    version: String,
    tries: i32,
}

/// Why one delivery failed.
#[derive(Debug, thiserror::Error)]
enum DeliveryError {
    #[error("the store cannot be reached")]
    Store(#[from] DatabaseError),
    #[error("execution-plane does not take the content: {0}")]
    Execution(#[from] client_kit::ClientError),
    #[error("the published pack cannot be read any more")]
    Pack,
}

impl From<sqlx::Error> for DeliveryError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Delivery {
    /// `database` is the worker role's; `execution` may act for any organization.
    #[must_use]
    pub fn new(database: Database, execution: Client) -> Arc<Self> {
        Arc::new(Self {
            database,
            execution: execution.with_retries(client_kit::Retries::NONE),
            woken: Notify::new(),
        })
    }

    /// Something was published.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// Delivers until `shutdown`.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        loop {
            match self.deliver_due().await {
                Ok(0) => {}
                Ok(_) => continue,
                Err(error) => tracing::warn!(error = %error, "content deliveries cannot be read"),
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.woken.notified() => {}
                () = tokio::time::sleep(SWEEP) => {}
            }
        }
    }

    /// Delivers what is due; says how many were tried.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn deliver_due(&self) -> Result<usize, DatabaseError> {
        let debts = self.take().await?;
        for debt in &debts {
            let delivered = self.deliver(debt).await;
            if let Err(error) = &delivered {
                tracing::warn!(
                    pack = debt.pack,
                    version = debt.version,
                    tries = debt.tries,
                    error = %error,
                    "content is not delivered yet"
                );
            }
            self.settle(debt, delivered).await?;
        }
        Ok(debts.len())
    }

    async fn take(&self) -> Result<Vec<Debt>, DatabaseError> {
        let mut tx = self.database.begin(Scope::All).await?;
        let rows = sqlx::query!(
            "UPDATE content_deliveries SET due_at = now() + $1::interval, tries = tries + 1
             WHERE (organization_id, sha256) IN (
                 SELECT organization_id, sha256 FROM content_deliveries
                 WHERE delivered_at IS NULL AND due_at <= now()
                 ORDER BY due_at LIMIT 8 FOR UPDATE SKIP LOCKED)
             RETURNING organization_id, sha256, pack, pack_version, tries",
            sqlx::postgres::types::PgInterval::try_from(TAKEN_FOR).unwrap_or_default(),
        )
        .fetch_all(&mut *tx)
        .await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        points::hit("control_plane.delivery_take.before_commit");
        tx.commit().await?;
        points::hit("control_plane.delivery_take.after_commit");
        let debts = rows.into_iter().map(|row| Debt {
            organization: OrganizationId(row.organization_id),
            sha256: store::digest(&row.sha256),
            pack: row.pack,
            version: row.pack_version,
            tries: row.tries,
        });
        Ok(debts.collect())
    }

    async fn deliver(&self, debt: &Debt) -> Result<(), DeliveryError> {
        let mut tx = self.database.begin(debt.organization).await?;
        let archive = store::archive(&mut tx, &debt.pack, &debt.version).await?;
        tx.commit().await?;
        let archive = archive.ok_or(DeliveryError::Pack)?;
        let read = tokio::task::spawn_blocking(move || library::reread(&archive).ok().and_then(|pack| pack.content));
        let content = read.await.ok().flatten().ok_or(DeliveryError::Pack)?;
        let execution = ExecutionPlane::new(self.execution.acting_for(debt.organization));
        points::hit("control_plane.delivery.before_call");
        execution.put_content(debt.sha256, Bytes::from(content.archive)).await?;
        points::hit("control_plane.delivery.after_call");
        Ok(())
    }

    async fn settle(&self, debt: &Debt, delivered: Result<(), DeliveryError>) -> Result<(), DatabaseError> {
        let mut tx = self.database.begin(debt.organization).await?;
        let problem = delivered.err().map(|error| error.to_string());
        let pause = backoff(debt.tries.unsigned_abs(), debt.sha256.as_bytes()[0]);
        let pause = sqlx::postgres::types::PgInterval::try_from(pause).unwrap_or_default();
        sqlx::query!(
            "UPDATE content_deliveries
             SET delivered_at = CASE WHEN $3::text IS NULL THEN now() END, last_error = $3,
                 due_at = CASE WHEN $3::text IS NULL THEN NULL ELSE now() + $4::interval END
             WHERE organization_id = $1 AND sha256 = $2",
            debt.organization.as_uuid(),
            debt.sha256.as_bytes(),
            problem,
            pause,
        )
        .execute(&mut *tx)
        .await?;
        points::hit("control_plane.delivery_settle.before_commit");
        tx.commit().await?;
        points::hit("control_plane.delivery_settle.after_commit");
        Ok(())
    }
}
