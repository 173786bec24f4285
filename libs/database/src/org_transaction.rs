//! A tokio-postgres transaction that is opened together with its organization.
//!
//! The library's own transaction needs a round trip for `BEGIN` alone and borrows its client; this
//! one sends `BEGIN` and the scope as one message, ahead of its first statement, and owns the pooled
//! client. So beginning costs nothing: the answer comes together with the first statement's.

use core::ops::Deref;
use core::pin::Pin;

use deadpool_postgres::{ClientWrapper, Object};
use futures::TryStreamExt as _;
use kernel::id::OrganizationId;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio_postgres::SimpleQueryStream;

use crate::error::DatabaseError;

/// An open transaction. Statements are run through `Deref` to the client (`query`, `execute`,
/// `prepare_cached`, …); several futures polled together are pipelined. Dropped without
/// [`OrgTransaction::commit`], it rolls back.
///
/// Whether the beginning went well is known after [`OrgTransaction::begun`], and no transaction is
/// committed without it. What is written before must do no harm outside of a transaction: a caller
/// reads or locks first, asks, and writes then.
pub struct OrgTransaction {
    client: Option<Object>,
    beginning: Mutex<Beginning>,
}

/// What is known of the answer to `BEGIN`.
enum Beginning {
    Unanswered(Pin<Box<SimpleQueryStream>>),
    Begun,
    Failed,
}

impl OrgTransaction {
    /// Sends the message; its answer is read later.
    pub(crate) async fn begin(client: Object, begin: &str) -> Result<Self, DatabaseError> {
        // Guarded before the message is sent: a caller that gives up midway leaves no transaction open.
        let mut transaction = Self {
            client: Some(client),
            beginning: Mutex::new(Beginning::Failed),
        };
        let answer = transaction.simple_query_raw(begin).await?;
        *transaction.beginning.get_mut() = Beginning::Unanswered(Box::pin(answer));
        Ok(transaction)
    }

    /// Waits until the transaction is known to be open; at once when any statement was answered.
    ///
    /// # Errors
    /// The server refused to begin.
    pub async fn begun(&self) -> Result<(), DatabaseError> {
        let mut beginning = self.beginning.lock().await;
        if let Beginning::Unanswered(answer) = &mut *beginning {
            match answer.try_for_each(|_| core::future::ready(Ok(()))).await {
                Ok(()) => *beginning = Beginning::Begun,
                Err(error) => {
                    *beginning = Beginning::Failed;
                    return Err(error.into());
                }
            }
        }
        match *beginning {
            Beginning::Begun => Ok(()),
            _ => Err(DatabaseError::Unavailable("the transaction did not begin".into())),
        }
    }

    /// Acts for another organization from here on, within the same transaction. A worker that took
    /// work under [`crate::Scope::All`] calls this before it touches the organization's rows; joined with
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
        self.begun().await?;
        // `COMMIT` alone "succeeds" after a failed statement by rolling back. The empty query before
        // it fails then, in the same round trip, and the commit is not reached.
        self.batch_execute("SELECT; COMMIT").await?;
        self.client = None;
        Ok(())
    }

    /// Undoes everything, without waiting for the answer: whoever is given the connection next comes
    /// after it.
    ///
    /// # Errors
    /// The connection was lost; the server then undoes it as well.
    pub async fn rollback(mut self) -> Result<(), DatabaseError> {
        let _answer = self.simple_query_raw("ROLLBACK").await?;
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
