//! Handing jobs to execution-plane. Alone it goes at once; while calls are under way the next ones are
//! gathered and go together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use client_kit::ClientError;
use contracts::{ExitCategory, JobSpec};
use control_plane_operation::Input;
use execution_plane_api::client::ExecutionPlane;
use execution_plane_api::{AttemptOutcome, SubmissionOutcome};
use kernel::id::OrganizationId;
use tokio::sync::oneshot;

use super::answer::refusal;
use super::{PerformError, Performer, Report, Unsettled};
use crate::points;
use crate::store::effect::OwnedEffect;

/// Jobs in one call.
const TOGETHER: usize = 64;
/// Calls under way for one organization.
const CALLS: usize = 2;

type Answer = Result<SubmissionOutcome, Arc<ClientError>>;

#[derive(Default)]
struct Queue {
    jobs: Vec<(JobSpec, oneshot::Sender<Answer>)>,
    calls: usize,
}

/// Jobs on their way.
pub struct Submissions {
    client: client_kit::Client,
    queues: Arc<Mutex<HashMap<OrganizationId, Queue>>>,
}

impl Submissions {
    pub fn new(client: client_kit::Client) -> Self {
        Self {
            client,
            queues: Arc::default(),
        }
    }

    async fn hand_over(&self, organization: OrganizationId, spec: JobSpec) -> Option<Answer> {
        let (sender, receiver) = oneshot::channel();
        let start = {
            let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            let queue = queues.entry(organization).or_default();
            queue.jobs.push((spec, sender));
            let start = queue.calls < CALLS;
            queue.calls += usize::from(start);
            start
        };
        if start {
            let client = ExecutionPlane::new(self.client.acting_for(organization));
            tokio::spawn(call_until_empty(client, organization, self.queues.clone()));
        }
        receiver.await.ok()
    }
}

async fn call_until_empty(
    client: ExecutionPlane,
    organization: OrganizationId,
    queues: Arc<Mutex<HashMap<OrganizationId, Queue>>>,
) {
    loop {
        let jobs: Vec<(JobSpec, oneshot::Sender<Answer>)> = {
            let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(queue) = queues.get_mut(&organization) else {
                return;
            };
            if queue.jobs.is_empty() {
                queue.calls -= 1;
                return;
            }
            let count = queue.jobs.len().min(TOGETHER);
            queue.jobs.drain(..count).collect()
        };
        let (specs, senders): (Vec<JobSpec>, Vec<oneshot::Sender<Answer>>) = jobs.into_iter().unzip();
        points::hit("control_plane.submit.before_call");
        let answer = client.submit(specs).await;
        points::hit("control_plane.submit.after_call");
        distribute(answer, senders);
    }
}

/// Who no longer waits needs no answer: its effect's row is still there.
fn distribute(
    answer: Result<execution_plane_api::AttemptBatchOutcome, ClientError>,
    senders: Vec<oneshot::Sender<Answer>>,
) {
    match answer {
        Ok(batch) => {
            for (sender, outcome) in senders.into_iter().zip(batch.outcomes) {
                let _ = sender.send(Ok(outcome));
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for sender in senders {
                let _ = sender.send(Err(error.clone()));
            }
        }
    }
}

impl Performer {
    pub(super) async fn submit(&self, owned: &OwnedEffect, spec: &JobSpec) -> Result<Report, PerformError> {
        match self.submissions.hand_over(owned.organization, spec.clone()).await {
            Some(Ok(outcome)) => Ok(report(spec, outcome)),
            Some(Err(error)) => self.submit_alone(owned, spec, error).await,
            None => Err(unsettled("the call was given up".into()).into()),
        }
    }

    /// The batch as a whole was not answered. When it was refused for what is in it, one job must not
    /// stand in the way of the others.
    async fn submit_alone(
        &self,
        owned: &OwnedEffect,
        spec: &JobSpec,
        error: Arc<ClientError>,
    ) -> Result<Report, PerformError> {
        let is_about_content = error
            .problem()
            .is_some_and(|problem| matches!(problem.status, 400 | 413 | 422));
        if !is_about_content {
            return Err(unsettled(error.into()).into());
        }
        match self.execution(owned.organization).submit(vec![spec.clone()]).await {
            Ok(mut batch) if !batch.outcomes.is_empty() => Ok(report(spec, batch.outcomes.swap_remove(0))),
            Ok(_) => Err(unsettled("the answer says nothing of the job".into()).into()),
            Err(error) => {
                let problem = refusal("execution-plane", error)?;
                Ok(refused(
                    spec,
                    super::answer::in_words(&problem),
                    ExitCategory::ValidationError,
                ))
            }
        }
    }
}

fn unsettled(cause: Box<dyn std::error::Error + Send + Sync>) -> Unsettled {
    Unsettled {
        dependency: "execution-plane",
        cause,
    }
}

/// An accepted attempt tells nothing: its result will. So a job costs no turn of its own for that.
fn report(spec: &JobSpec, outcome: SubmissionOutcome) -> Report {
    match outcome.outcome {
        AttemptOutcome::Accepted | AttemptOutcome::Replayed => Report::Done,
        AttemptOutcome::Refused | AttemptOutcome::Conflict => {
            let problem = outcome.problem;
            let category = match problem.as_ref().map(|problem| problem.code.as_str()) {
                Some(execution_plane_api::problem_codes::COMMAND_NOT_ALLOWED) => ExitCategory::PolicyError,
                _ => ExitCategory::ValidationError,
            };
            let detail = problem.map_or_else(
                || "execution-plane refused the job".to_owned(),
                |problem| {
                    let faults = problem
                        .errors
                        .iter()
                        .take(5)
                        .map(|error| format!("; {}: {}", error.pointer, error.detail));
                    format!("{}{}", problem.detail, faults.collect::<String>())
                },
            );
            refused(spec, detail, category)
        }
    }
}

fn refused(spec: &JobSpec, detail: String, category: ExitCategory) -> Report {
    Report::Tell(Input::AttemptRefused {
        attempt_id: spec.attempt_id,
        category,
        detail,
    })
}
