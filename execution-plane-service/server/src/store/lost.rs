//! Declaring attempts lost: those whose runner did not come back in time, or came back without them.

use chrono::{DateTime, Utc};
use contracts::LogRef;
use database::{Database, Scope};
use execution_plane_domain::attempt::{Event, Outcome};
use execution_plane_domain::ended;
use execution_plane_domain::lease::LeaseTerms;
use kernel::id::{AttemptId, OrganizationId};

use super::artifacts;
use super::ends::{self, End};
use super::error::StoreError;
use super::locked::{self, Locked};
use super::statements;

const OVERDUE: &str = "SELECT organization_id, attempt_id FROM leases
    WHERE deadline_at + make_interval(secs => $1) <= clock_timestamp()
    ORDER BY deadline_at LIMIT $2";
const NOW: &str = "SELECT clock_timestamp()";

/// Why an attempt is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its deadline and grace are over, and the service has been reachable since then.
    Overdue { available_since: DateTime<Utc> },
    /// A newer session of its runner, this one, does not have it.
    Abandoned { session: u64 },
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Lost,
    /// It was renewed, adopted, or has ended meanwhile.
    Spared,
    /// Output came after the bundle was made: make it again.
    OutputMoved,
}

/// The database's clock.
///
/// # Errors
/// The database failed.
pub async fn now(worker: &Database) -> Result<DateTime<Utc>, StoreError> {
    let transaction = worker.begin_hot(Scope::All).await?;
    let row = transaction.query_one(NOW, &[]).await?;
    transaction.rollback().await?;
    Ok(row.get(0))
}

/// Leases past deadline and grace, of all organizations, the oldest first.
///
/// # Errors
/// The database failed.
pub async fn overdue(
    worker: &Database,
    terms: &LeaseTerms,
    limit: i64,
) -> Result<Vec<(OrganizationId, AttemptId)>, StoreError> {
    let transaction = worker.begin_hot(Scope::All).await?;
    let statement = transaction.prepare_cached(OVERDUE).await?;
    let grace = terms.grace.as_seconds_f64();
    let rows = transaction.query(&statement, &[&grace, &limit]).await?;
    transaction.rollback().await?;
    let read = |row: &tokio_postgres::Row| (OrganizationId(row.get(0)), AttemptId(row.get(1)));
    Ok(rows.iter().map(read).collect())
}

/// Declares one lost, if it still is. `log` is the bundle of its output up to `log_sequence`.
///
/// # Errors
/// The database failed.
pub async fn declare(
    database: &Database,
    terms: &LeaseTerms,
    organization: OrganizationId,
    id: AttemptId,
    cause: Cause,
    log: Option<(LogRef, u64)>,
) -> Result<Verdict, StoreError> {
    let transaction = database.begin_hot(organization).await?;
    let ids = [id];
    statements::prepare(&transaction, &locked::STATEMENTS).await?;
    statements::prepare(&transaction, &[artifacts::OF_ATTEMPTS]).await?;
    let (locked, artifacts) = futures::try_join!(
        locked::lock(&transaction, organization, &ids),
        artifacts::of_attempts(&transaction, organization, &ids),
    )?;
    let Some(locked) = locked.get(&id).filter(|locked| is_lost(locked, terms, cause)) else {
        return Ok(Verdict::Spared);
    };
    if locked.output.last_sequence != log.as_ref().map_or(0, |(_, sequence)| *sequence) {
        return Ok(Verdict::OutputMoved);
    }
    let Outcome::Changed(after) = locked.attempt.apply(Event::RunnerLost) else {
        return Ok(Verdict::Spared);
    };
    let mut result = ended::runner_lost(locked.subject(), locked.attempt.job_started(), locked.now);
    result.artifacts = artifacts.into_values().flatten().collect();
    result.raw_logs = log.iter().map(|(log, _)| log.clone()).collect();
    let end = End {
        before: locked.clone(),
        after,
        result,
        report_sha256: None,
        log: log.map(|(log, _)| log),
    };
    ends::write(&transaction, organization, &[end]).await?;
    failpoints::hit("execution_plane.reap.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.reap.after_commit");
    Ok(Verdict::Lost)
}

fn is_lost(locked: &Locked, terms: &LeaseTerms, cause: Cause) -> bool {
    let Some(lease) = locked.lease else { return false };
    match cause {
        Cause::Overdue { available_since } => terms.is_lost(lease.deadline_at, available_since, locked.now),
        Cause::Abandoned { session } => lease.session < session,
    }
}
