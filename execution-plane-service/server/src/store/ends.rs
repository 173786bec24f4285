//! Writing the ends of attempts: state, result, lease and log in one statement.

use contracts::{ExecutionResult, LogRef};
use database::OrgTransaction;
use execution_plane_domain::attempt::Attempt;
use kernel::Sha256Digest;
use kernel::id::OrganizationId;
use uuid::Uuid;

use super::error::StoreError;
use super::facts::{self, Fact};
use super::locked::Locked;
use super::words;

const END: &str = include_str!("ends.sql");

/// One end.
#[derive(Debug, Clone)]
pub struct End {
    /// The attempt as it stood, under lock.
    pub before: Locked,
    pub after: Attempt,
    pub result: ExecutionResult,
    /// Of the runner's report; none when the service ends it.
    pub report_sha256: Option<Sha256Digest>,
    /// The bundle that holds all of its output.
    pub log: Option<LogRef>,
}

/// Writes `ends`, whose attempts are locked by `transaction`.
pub async fn write(transaction: &OrgTransaction, organization: OrganizationId, ends: &[End]) -> Result<(), StoreError> {
    if ends.is_empty() {
        return Ok(());
    }
    let bodies = ends
        .iter()
        .map(|end| serde_json::to_string(&end.result))
        .collect::<Result<Vec<_>, _>>()
        .map_err(StoreError::corrupt("result"))?;
    let finished = ends
        .iter()
        .map(|end| Fact::finished(&end.before, end.after.state, &end.result))
        .collect();
    let (ended, recorded) = futures::join!(
        write_rows(transaction, organization, ends, &bodies),
        facts::record(transaction, organization, finished),
    );
    ended?;
    recorded
}

async fn write_rows(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    ends: &[End],
    bodies: &Vec<String>,
) -> Result<(), StoreError> {
    let logs: Vec<Option<&LogRef>> = ends.iter().map(|end| end.log.as_ref()).collect();
    let statement = transaction.prepare_cached(END).await?;
    transaction
        .execute(
            &statement,
            &[
                &organization.as_uuid(),
                &ends
                    .iter()
                    .map(|end| end.result.attempt_id.as_uuid())
                    .collect::<Vec<Uuid>>(),
                &ends.iter().map(|end| end.after.state.as_str()).collect::<Vec<_>>(),
                &ends
                    .iter()
                    .map(|end| words::column(end.after.epoch))
                    .collect::<Vec<_>>(),
                &ends
                    .iter()
                    .map(|end| end.result.reason.map(words::reason_word))
                    .collect::<Vec<_>>(),
                bodies,
                &ends
                    .iter()
                    .map(|end| end.report_sha256.as_ref().map(|digest| digest.as_bytes().as_slice()))
                    .collect::<Vec<_>>(),
                &logs.iter().map(|log| log.map(|log| log.id)).collect::<Vec<_>>(),
                &logs
                    .iter()
                    .map(|log| log.map(|log| log.uri.as_str()))
                    .collect::<Vec<_>>(),
                &logs
                    .iter()
                    .map(|log| log.map(|log| log.sha256.as_bytes().as_slice()))
                    .collect::<Vec<_>>(),
                &logs
                    .iter()
                    .map(|log| log.map(|log| words::column(log.size_bytes)))
                    .collect::<Vec<_>>(),
                &logs
                    .iter()
                    .map(|log| log.map(|log| words::column(log.lines)))
                    .collect::<Vec<_>>(),
            ],
        )
        .await?;
    Ok(())
}
