//! The ends of attempts as runners report them, many in one transaction.
//!
//! Invariants: state and result are stored together; nothing ends before all of its output and
//! artifacts are durable, so who sees the end can read everything; the end never changes: a repeat
//! of the same report gets the first answer, another report is refused.

use std::collections::{BTreeMap, HashMap};

use audit::NewFact;
use contracts::{ArtifactRef, ExecutionResult, ExecutionStatus, LogRef};
use database::{Database, OrgTransaction, Scope};
use execution_plane_domain::attempt::{Event, Outcome, State};
use kernel::Sha256Digest;
use kernel::id::{AttemptId, OrganizationId};
use uuid::Uuid;

use super::artifacts;
use super::ends::{self, End};
use super::error::StoreError;
use super::locked::{self, Locked};
use super::report::{Fenced, Reporter};
use super::{statements, words};

const EARLIER: &str = "SELECT attempt_id, body, report_sha256 FROM results
    WHERE organization_id = $1 AND attempt_id = ANY ($2::uuid[])";

/// One report of an end.
#[derive(Debug, Clone)]
pub struct Report {
    pub reporter: Reporter,
    pub last_output_sequence: u64,
    pub result: ExecutionResult,
    /// Of the report as it came.
    pub sha256: Sha256Digest,
    /// The bundle of all output up to `last_output_sequence`, when there is any.
    pub log: Option<LogRef>,
    /// For the audit, once it is stored.
    pub fact: Option<NewFact>,
}

/// What became of a report.
#[derive(Debug, Clone)]
pub enum Finished {
    Ended {
        state: State,
        result: Box<ExecutionResult>,
        /// It was reported before, word for word.
        replayed: bool,
    },
    Fenced(Fenced),
    /// The result names another operation or node than the attempt's.
    Foreign,
    /// Chunks are missing.
    OutputIncomplete {
        expected_sequence: u64,
    },
    /// More output is durable than the report knows of.
    OutputBeyond {
        last_sequence: u64,
    },
}

/// Ends the attempts of `batch`; outcomes are in its order.
///
/// # Errors
/// The database failed; a repeat finds out what is stored.
pub async fn finish(database: &Database, batch: &[Report]) -> Result<Vec<Finished>, StoreError> {
    let mut parties: BTreeMap<OrganizationId, Vec<usize>> = BTreeMap::new();
    for (index, report) in batch.iter().enumerate() {
        parties.entry(report.reporter.organization).or_default().push(index);
    }
    let transaction = database.begin_pipelined(Scope::All).await?;
    let mut outcomes: Vec<Option<Finished>> = vec![None; batch.len()];
    for (organization, indices) in parties {
        finish_part(&transaction, organization, batch, &indices, &mut outcomes).await?;
    }
    failpoints::hit("execution_plane.finish.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.finish.after_commit");
    let settled = |outcome: Option<Finished>| outcome.unwrap_or(Finished::Fenced(Fenced::NotYours));
    Ok(outcomes.into_iter().map(settled).collect())
}

async fn finish_part(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    batch: &[Report],
    indices: &[usize],
    outcomes: &mut [Option<Finished>],
) -> Result<(), StoreError> {
    let ids: Vec<AttemptId> = indices.iter().map(|index| batch[*index].reporter.attempt).collect();
    statements::prepare(transaction, &locked::STATEMENTS).await?;
    statements::prepare(transaction, &[artifacts::OF_ATTEMPTS, EARLIER]).await?;
    // In this order: artifacts are those that were recorded before the lock.
    let (acting, locked, artifacts, earlier) = futures::join!(
        transaction.act_for(organization),
        locked::lock(transaction, organization, &ids),
        artifacts::of_attempts(transaction, organization, &ids),
        earlier(transaction, organization, &ids),
    );
    acting?;
    transaction.begun().await?;
    let (mut locked, mut artifacts, earlier) = (locked?, artifacts?, earlier?);
    let mut ends: Vec<End> = Vec::new();
    let mut facts: Vec<NewFact> = Vec::new();
    for &index in indices {
        let report = &batch[index];
        let id = report.reporter.attempt;
        let Some(one) = locked.get_mut(&id) else {
            outcomes[index] = Some(Finished::Fenced(Fenced::NotYours));
            continue;
        };
        outcomes[index] = Some(match decide(one, report) {
            Ok(end) => {
                let end = complete(end, report, one, artifacts.remove(&id).unwrap_or_default());
                one.attempt = end.after;
                one.lease = None;
                let finished = Finished::Ended {
                    state: end.after.state,
                    result: Box::new(end.result.clone()),
                    replayed: false,
                };
                ends.push(end);
                facts.extend(report.fact.clone());
                finished
            }
            Err(Finished::Fenced(Fenced::Ended)) => match ends.iter().find(|end| end.is_of(report)) {
                Some(end) => Finished::Ended {
                    state: end.after.state,
                    result: Box::new(end.result.clone()),
                    replayed: true,
                },
                None => repeated(report, one, &earlier)?,
            },
            Err(refused) => refused,
        });
    }
    let (written, kept) = futures::join!(
        ends::write(transaction, organization, &ends),
        audit::append(transaction, &facts),
    );
    kept?;
    written
}

impl End {
    /// Whether `report`, word for word, made this end.
    fn is_of(&self, report: &Report) -> bool {
        self.result.attempt_id == report.reporter.attempt && self.report_sha256 == Some(report.sha256)
    }
}

/// The end that the report makes of the attempt.
fn decide(locked: &Locked, report: &Report) -> Result<End, Finished> {
    report.reporter.fence(locked).map_err(Finished::Fenced)?;
    if (report.result.operation_id, &report.result.plan_node_id) != (locked.operation_id, &locked.plan_node_id) {
        return Err(Finished::Foreign);
    }
    let event = Event::Finished {
        epoch: report.reporter.epoch,
        status: report.result.status,
    };
    let after = match locked.attempt.apply(event) {
        Outcome::Changed(after) => after,
        Outcome::Unchanged => return Err(Finished::Fenced(Fenced::Ended)),
        Outcome::Refused(refusal) => return Err(Finished::Fenced(Fenced::by_rule(refusal))),
    };
    let durable = locked.output.last_sequence;
    if durable < report.last_output_sequence {
        return Err(Finished::OutputIncomplete {
            expected_sequence: durable + 1,
        });
    }
    if durable > report.last_output_sequence {
        return Err(Finished::OutputBeyond { last_sequence: durable });
    }
    Ok(End {
        before: locked.clone(),
        after,
        result: report.result.clone(),
        report_sha256: Some(report.sha256),
        log: report.log.clone(),
    })
}

/// Adds what the service knows better than the runner: what was stored, and who asked for a cancel.
fn complete(mut end: End, report: &Report, locked: &Locked, artifacts: Vec<ArtifactRef>) -> End {
    end.result.artifacts = artifacts;
    end.result.raw_logs = report.log.clone().into_iter().collect();
    if end.result.status == ExecutionStatus::Cancelled && end.result.reason.is_none() {
        end.result.reason = locked.cancel_reason;
    }
    end
}

fn repeated(
    report: &Report,
    locked: &Locked,
    earlier: &HashMap<AttemptId, (String, Option<Sha256Digest>)>,
) -> Result<Finished, StoreError> {
    let Some((body, Some(sha256))) = earlier.get(&report.reporter.attempt) else {
        return Ok(Finished::Fenced(Fenced::Ended));
    };
    if *sha256 != report.sha256 {
        return Ok(Finished::Fenced(Fenced::Ended));
    }
    Ok(Finished::Ended {
        state: locked.attempt.state,
        result: Box::new(serde_json::from_str(body).map_err(StoreError::corrupt("result"))?),
        replayed: true,
    })
}

async fn earlier(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    ids: &[AttemptId],
) -> Result<HashMap<AttemptId, (String, Option<Sha256Digest>)>, StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let statement = transaction.prepare_cached(EARLIER).await?;
    let rows = transaction.query(&statement, &[&organization.as_uuid(), &ids]).await?;
    let read = |row: &tokio_postgres::Row| {
        let sha256 = row.get::<_, Option<&[u8]>>(2).map(words::digest).transpose()?;
        Ok((AttemptId(row.get(0)), (row.get(1), sha256)))
    };
    rows.iter().map(read).collect()
}
