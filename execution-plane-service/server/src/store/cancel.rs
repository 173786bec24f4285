//! Cancelling: a queued attempt ends at once, a held one is told to its runner.

use audit::NewFact;
use contracts::ExitReason;
use database::Database;
use execution_plane_domain::attempt::{Event, Outcome, State};
use execution_plane_domain::ended;
use kernel::id::{AttemptId, OrganizationId, RunnerId};

use super::ends::{self, End};
use super::error::StoreError;
use super::facts::{self, Fact};
use super::locked;
use super::words;

const REQUEST: &str = "WITH told AS (
        UPDATE leases SET cancel_requested = true WHERE organization_id = $1 AND attempt_id = $2)
    UPDATE attempts SET state = $3, version = version + 1, cancel_requested_at = clock_timestamp(), cancel_reason = $4
    WHERE organization_id = $1 AND attempt_id = $2";
const MARK: &str = "UPDATE attempts SET cancel_requested_at = clock_timestamp(), cancel_reason = $3
    WHERE organization_id = $1 AND attempt_id = $2";

/// What a cancel came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    Unknown,
    /// It has ended, or was asked to before.
    Unchanged,
    /// It was queued and is cancelled now; its result is stored.
    AtOnce,
    /// Its runner is to be told.
    Requested(Option<RunnerId>),
}

/// Asks for the end of an attempt.
///
/// # Errors
/// The database failed.
pub async fn cancel(
    database: &Database,
    organization: OrganizationId,
    id: AttemptId,
    reason: ExitReason,
    fact: Option<NewFact>,
) -> Result<Cancelled, StoreError> {
    let transaction = database.begin_hot(organization).await?;
    let locked = locked::lock(&transaction, organization, &[id]).await?;
    let Some(locked) = locked.get(&id) else {
        return Ok(Cancelled::Unknown);
    };
    let Outcome::Changed(after) = locked.attempt.apply(Event::CancelRequested) else {
        return Ok(Cancelled::Unchanged);
    };
    let (key, word) = ((organization.as_uuid(), id.as_uuid()), words::reason_word(reason));
    let outcome = if after.state == State::Cancelled {
        transaction.execute(MARK, &[&key.0, &key.1, &word]).await?;
        let end = End {
            before: locked.clone(),
            after,
            result: ended::cancelled_in_queue(locked.subject(), reason, locked.now),
            report_sha256: None,
            log: None,
        };
        ends::write(&transaction, organization, &[end]).await?;
        Cancelled::AtOnce
    } else {
        let state = after.state.as_str();
        transaction.execute(REQUEST, &[&key.0, &key.1, &state, &word]).await?;
        facts::record(&transaction, organization, vec![Fact::cancelling(locked)]).await?;
        Cancelled::Requested(locked.runner)
    };
    audit::append(&transaction, fact.as_slice()).await?;
    failpoints::hit("execution_plane.cancel.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.cancel.after_commit");
    Ok(outcome)
}
