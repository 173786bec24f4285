//! The result channel: pulls what execution-plane has finished and tells the operations.
//!
//! One held call for each organization that ever had an operation. A result is acknowledged, on the next pull,
//! only after the turn that took it in is committed; whatever is cut off between comes again, and an
//! operation that knows a result takes no notice of it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use contracts::ExecutionResult;
use control_plane_operation::Input;
use control_plane_ports::runtime::backoff;
use database::Scope;
use execution_plane_api::ResultsPullRequest;
use execution_plane_api::client::ExecutionPlane;
use futures::future::join_all;
use kernel::id::{AttemptId, OperationId, OrganizationId};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::running;
use crate::engine::{Engine, EngineError, Telling};
use crate::points;
use crate::store::result_channel;

const LIMIT: u32 = 256;
const WAIT_SECONDS: u32 = 20;
/// How often organizations are looked for that began with another process.
const LOOK_AROUND: Duration = Duration::from_secs(2);

/// Listens for results of every organization until `shutdown`.
pub async fn run(engine: Arc<Engine>, client: client_kit::Client, shutdown: CancellationToken) {
    let mut changes = engine.organizations();
    let mut listening = HashSet::new();
    let mut pulls = JoinSet::new();
    let mut known = first_organizations(&engine, &shutdown).await;
    loop {
        for organization in known.drain(..) {
            if listening.insert(organization) {
                let execution = ExecutionPlane::new(client.acting_for(organization));
                pulls.spawn(pull(engine.clone(), organization, execution, shutdown.clone()));
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            organization = changes.recv() => match organization {
                Ok(organization) => known.push(organization),
                Err(RecvError::Lagged(_)) => known = first_organizations(&engine, &shutdown).await,
                Err(RecvError::Closed) => break,
            },
            () = tokio::time::sleep(LOOK_AROUND) => known = first_organizations(&engine, &shutdown).await,
        }
    }
    while pulls.join_next().await.is_some() {}
}

async fn first_organizations(engine: &Engine, shutdown: &CancellationToken) -> Vec<OrganizationId> {
    let mut tries = 0;
    while !shutdown.is_cancelled() {
        match organizations(engine).await {
            Ok(organizations) => return organizations,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the organizations cannot be listed"
                );
                shutdown
                    .run_until_cancelled(tokio::time::sleep(backoff(tries, 0)))
                    .await;
                tries += 1;
            }
        }
    }
    Vec::new()
}

async fn organizations(engine: &Engine) -> Result<Vec<OrganizationId>, EngineError> {
    let tx = engine.database().begin_hot(Scope::All).await?;
    let organizations = result_channel::all(&tx).await?;
    tx.rollback().await?;
    Ok(organizations)
}

async fn pull(engine: Arc<Engine>, organization: OrganizationId, client: ExecutionPlane, shutdown: CancellationToken) {
    let mut ack = Vec::new();
    let mut failures = 0;
    let mut watch = running::Watch::default();
    while !shutdown.is_cancelled() {
        let running = watch.query(Instant::now());
        let request = ResultsPullRequest {
            ack: ack.clone(),
            limit: LIMIT,
            wait_seconds: if running.is_some() { WAIT_SECONDS } else { 1 },
            running,
        };
        let Some(answer) = shutdown.run_until_cancelled(client.pull_results(&request)).await else {
            return;
        };
        match answer {
            Ok(answer) => {
                let count = answer.results.len();
                // A pull that brings nothing promises nothing.
                if count > 0 {
                    points::hit("control_plane.results.after_pull");
                }
                ack = take_in(&engine, organization, answer.results).await;
                if count > 0 {
                    points::hit("control_plane.results.after_commit");
                }
                if let Some(answer) = &answer.running {
                    let told = running::tell(&engine, organization, &answer.attempts).await;
                    watch.took(answer, &told);
                }
                // What was not taken in comes again at once: not faster than the database recovers.
                failures = if ack.len() == count { 0 } else { failures + 1 };
            }
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "no results could be pulled");
                failures += 1;
            }
        }
        if failures > 0 {
            shutdown
                .run_until_cancelled(tokio::time::sleep(backoff(failures, 0)))
                .await;
        }
    }
}

/// Tells operations their results; answers with those that are durable.
async fn take_in(engine: &Arc<Engine>, organization: OrganizationId, results: Vec<ExecutionResult>) -> Vec<AttemptId> {
    let mut by_operation: BTreeMap<OperationId, Vec<ExecutionResult>> = BTreeMap::new();
    for result in results {
        by_operation.entry(result.operation_id).or_default().push(result);
    }
    let told = by_operation.into_iter().map(|(operation, results)| async move {
        let attempts: Vec<AttemptId> = results.iter().map(|result| result.attempt_id).collect();
        let inputs = results.into_iter().map(|result| Input::AttemptResult(Box::new(result)));
        let telling = Telling {
            inputs: inputs.collect(),
            done: Vec::new(),
        };
        match engine.tell(organization, operation, telling).await {
            Ok(advance) => {
                engine.hand_over(advance);
                attempts
            }
            Err(error) if error.is_not_found() => {
                tracing::warn!(%operation, "results of an operation that does not exist");
                attempts
            }
            Err(error) => {
                tracing::warn!(%operation, error = &error as &dyn std::error::Error, "results could not be taken in");
                Vec::new()
            }
        }
    });
    join_all(told).await.concat()
}
