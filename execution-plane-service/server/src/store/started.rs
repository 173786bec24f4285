//! A runner tells of the start. Only information, so the commit is not waited for.

use contracts::Isolation;
use database::Database;
use execution_plane_domain::attempt::{Attempt, Event, Outcome, Phase, State};
use execution_plane_domain::submission::isolation_rank;

use super::error::StoreError;
use super::facts::{self, Fact};
use super::report::{Fenced, Reporter};

const UPDATE: &str = "UPDATE attempts SET state = $3, ran = $4, isolation_used = $5, version = version + 1,
        started_at = CASE WHEN $4 THEN COALESCE(started_at, clock_timestamp()) ELSE started_at END
    WHERE organization_id = $1 AND attempt_id = $2";

/// Why a start is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Fenced(Fenced),
    /// The job was asked to be isolated better than it is.
    TooWeak {
        asked: Isolation,
    },
}

/// Records it; answers the state after it.
///
/// # Errors
/// The database failed.
pub async fn started(
    database: &Database,
    reporter: Reporter,
    phase: Phase,
    isolation_used: Isolation,
) -> Result<Result<State, Refused>, StoreError> {
    let transaction = database.begin_unsynced(reporter.organization).await?;
    let locked = match reporter.lock(&transaction).await? {
        Ok(locked) => locked,
        Err(fenced) => return Ok(Err(Refused::Fenced(fenced))),
    };
    if isolation_used < locked.isolation {
        return Ok(Err(Refused::TooWeak {
            asked: locked.isolation,
        }));
    }
    let event = Event::Started {
        epoch: reporter.epoch,
        phase,
    };
    let after: Attempt = match locked.attempt.apply(event) {
        Outcome::Changed(after) => after,
        Outcome::Unchanged => return Ok(Ok(locked.attempt.state)),
        Outcome::Refused(refusal) => return Ok(Err(Refused::Fenced(Fenced::by_rule(refusal)))),
    };
    transaction.begun().await?;
    let statement = transaction.prepare_cached(UPDATE).await?;
    let organization = reporter.organization.as_uuid();
    let (id, rank) = (reporter.attempt.as_uuid(), isolation_rank(isolation_used));
    transaction
        .execute(
            &statement,
            &[&organization, &id, &after.state.as_str(), &after.ran, &rank],
        )
        .await?;
    if after.ran && !locked.attempt.ran {
        let running = Fact::running(&locked, after.state);
        facts::record(&transaction, reporter.organization, vec![running]).await?;
    }
    failpoints::hit("execution_plane.started.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.started.after_commit");
    Ok(Ok(after.state))
}
