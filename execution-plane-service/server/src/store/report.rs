//! Whose report it is: the fence that every write of a runner passes.

use database::{Database, OrgTransaction};
use execution_plane_domain::attempt::Refusal;
use kernel::id::{AttemptId, OrganizationId};

use super::error::StoreError;
use super::granted::Grantee;
use super::locked::{self, Locked};

/// Which attempt a runner writes to, and as whom.
#[derive(Debug, Clone, Copy)]
pub struct Reporter {
    pub organization: OrganizationId,
    pub grantee: Grantee,
    pub attempt: AttemptId,
    pub epoch: u64,
}

/// Why a report is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fenced {
    /// No such attempt, or another runner's: the same to the caller.
    NotYours,
    /// The lease has passed on, to a newer session or by being lost.
    Stale { current: u64 },
    /// The attempt has ended.
    Ended,
}

impl Fenced {
    /// What the rules refused.
    pub const fn by_rule(refusal: Refusal) -> Self {
        match refusal {
            Refusal::StaleEpoch { current } => Self::Stale { current },
            Refusal::Ended => Self::Ended,
            Refusal::NotHeld | Refusal::MayHaveStarted => Self::NotYours,
        }
    }
}

impl Reporter {
    /// Locks the attempt and passes the fence. An ended attempt passes when the epoch is right: what
    /// may still be said about it is the caller's rule.
    pub async fn lock(&self, transaction: &OrgTransaction) -> Result<Result<Locked, Fenced>, StoreError> {
        let mut locked = locked::lock(transaction, self.organization, &[self.attempt]).await?;
        Ok(match locked.remove(&self.attempt) {
            Some(locked) => self.fence(&locked).map(|()| locked),
            None => Err(Fenced::NotYours),
        })
    }

    /// Whether the report is to be taken for `locked`.
    pub fn fence(&self, locked: &Locked) -> Result<(), Fenced> {
        if locked.runner != Some(self.grantee.runner) {
            return Err(Fenced::NotYours);
        }
        let current = locked.attempt.epoch;
        if current != self.epoch {
            return Err(Fenced::Stale { current });
        }
        match locked.lease {
            Some(lease) if lease.session != self.grantee.session => Err(Fenced::Stale { current }),
            _ => Ok(()),
        }
    }
}

/// Passes the fence without writing: for reads, and before a long upload. An ended attempt is
/// refused.
///
/// # Errors
/// The database failed.
pub async fn check(database: &Database, reporter: Reporter) -> Result<Result<(), Fenced>, StoreError> {
    let transaction = database.begin_hot(reporter.organization).await?;
    let locked = reporter.lock(&transaction).await?;
    transaction.rollback().await?;
    Ok(locked.and_then(|locked| match locked.attempt.state.is_terminal() {
        true => Err(Fenced::Ended),
        false => Ok(()),
    }))
}
