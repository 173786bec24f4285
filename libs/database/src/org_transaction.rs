//! A tokio-postgres transaction that is opened together with its organization.
//!
//! The library's own transaction needs a round trip for `BEGIN` alone and borrows its client; this
//! one sends `BEGIN` and the scope as one message and owns the pooled client.

use core::ops::Deref;

use deadpool_postgres::{ClientWrapper, Object};
use kernel::id::OrganizationId;
use tokio::runtime::Handle;

use crate::error::DatabaseError;
use crate::scope::Scope;

/// An open transaction. Statements are run through `Deref` to the client (`query`, `execute`,
/// `prepare_cached`, …); several futures polled together are pipelined. Dropped without
/// [`OrgTransaction::commit`], it rolls back.
pub struct OrgTransaction {
    client: Option<Object>,
}

impl OrgTransaction {
    pub(crate) async fn begin(client: Object, scope: Scope) -> Result<Self, DatabaseError> {
        // Guarded before the message is sent: a caller that gives up midway leaves no transaction open.
        let transaction = Self { client: Some(client) };
        transaction.batch_execute(&scope.begin_sql()).await?;
        Ok(transaction)
    }

    /// Acts for another organization from here on, within the same transaction. A worker that took
    /// work under [`Scope::All`] calls this before it touches the organization's rows; joined with
    /// the next statement it costs no round trip of its own.
    ///
    /// # Errors
    /// The server refused.
    pub async fn act_for(&self, organization: OrganizationId) -> Result<(), DatabaseError> {
        // One message, sent at the first poll: what is joined after it runs after it. A UUID's text
        // form needs no quoting.
        let set = format!("SELECT set_config('app.organization_id', '{organization}', true)");
        self.batch_execute(&set).await?;
        Ok(())
    }

    /// Makes everything durable. When the connection was lost the outcome is not known; any other
    /// error says that nothing was written, also when an earlier statement's error was passed over.
    ///
    /// # Errors
    /// The server refused, or the connection was lost.
    pub async fn commit(mut self) -> Result<(), DatabaseError> {
        // `COMMIT` alone "succeeds" after a failed statement by rolling back. The empty query before
        // it fails then, in the same round trip, and the commit is not reached.
        self.batch_execute("SELECT; COMMIT").await?;
        self.client = None;
        Ok(())
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// The connection was lost; the server then undoes it as well.
    pub async fn rollback(mut self) -> Result<(), DatabaseError> {
        self.batch_execute("ROLLBACK").await?;
        self.client = None;
        Ok(())
    }
}

impl Deref for OrgTransaction {
    type Target = ClientWrapper;
    fn deref(&self) -> &ClientWrapper {
        self.client
            .as_ref()
            .expect("the client is taken only by commit, rollback and drop, which end the value")
    }
}

impl Drop for OrgTransaction {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        match Handle::try_current() {
            // The client goes back to the pool only after the roll-back.
            Ok(runtime) => {
                runtime.spawn(async move {
                    if client.batch_execute("ROLLBACK").await.is_err() {
                        let _ = Object::take(client);
                    }
                });
            }
            // No runtime any more: the connection closes, and the server rolls back.
            Err(_) => drop(Object::take(client)),
        }
    }
}
