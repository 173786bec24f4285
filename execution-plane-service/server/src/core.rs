//! What all handlers and workers of this service share.

use std::sync::Arc;

use audit::NewFact;
use contracts::{ExitReason, LogRef};
use database::Database;
use execution_plane_domain::routing::Demand;
use execution_plane_ports::BlobStore;
use identity::Minter;
use kernel::id::{AttemptId, OrganizationId, RunnerId};
use outbox::{Feed, Signal};

use crate::config::{Config, Dependencies};
use crate::dispatch::{Batcher, Signals, Waiters};
use crate::figures::Losses;
use crate::store::cancel::Cancelled;
use crate::store::finish::{Finished, Report};
use crate::store::lost::{Cause, Verdict};
use crate::store::submit::{Submission, Submitted};
use crate::store::{self, StoreError};
use crate::{output, store::granted::Grantee};

/// Transactions of one kind that run at once: while one syncs, the next gathers.
const LANES: usize = 2;

/// State and wake-ups.
pub struct Hot {
    pub config: Config,
    pub api: Database,
    pub worker: Database,
    pub blobs: Arc<dyn BlobStore>,
    pub waiters: Waiters,
    /// An organization has results.
    pub results: Signals<OrganizationId>,
    /// An attempt has output, or has ended.
    pub outputs: Signals<(OrganizationId, AttemptId)>,
    /// A runner is to be told something.
    pub runners: Signals<(OrganizationId, RunnerId)>,
    pub outbox: Signal,
    pub losses: Losses,
}

/// Everything.
pub struct Core {
    pub hot: Arc<Hot>,
    pub minter: Minter,
    pub feed: Feed,
    submissions: Batcher<Submission, Result<Submitted, StoreError>>,
    reports: Batcher<Report, Result<Finished, StoreError>>,
}

impl Core {
    /// Starts the batchers; needs a runtime.
    pub fn start(config: Config, dependencies: Dependencies, losses: Losses) -> Arc<Self> {
        let outbox = Signal::default();
        let feed = Feed::new(dependencies.api.clone(), outbox.clone());
        let hot = Arc::new(Hot {
            config,
            api: dependencies.api,
            worker: dependencies.worker,
            blobs: dependencies.blobs,
            waiters: Waiters::default(),
            results: Signals::default(),
            outputs: Signals::default(),
            runners: Signals::default(),
            outbox,
            losses,
        });
        let (submitting, finishing) = (hot.clone(), hot.clone());
        let submissions = Batcher::start(
            LANES,
            |item: &Submission| item.organization,
            move |batch| {
                let hot = submitting.clone();
                async move { hot.submit(batch).await }
            },
        );
        let reports = Batcher::start(
            LANES,
            |item: &Report| item.reporter.organization,
            move |batch| {
                let hot = finishing.clone();
                async move { hot.finish(batch).await }
            },
        );
        Arc::new(Self {
            hot,
            minter: Minter::new(dependencies.runner_key, "execution-plane"),
            feed,
            submissions,
            reports,
        })
    }

    /// Accepts one attempt, together with others that come at the same time.
    pub async fn submit(&self, submission: Submission) -> Result<Submitted, StoreError> {
        let outcome = self.submissions.carry_out(submission).await;
        outcome.unwrap_or_else(|| Err(ended()))
    }

    /// Ends one attempt as reported, together with others.
    pub async fn finish(&self, report: Report) -> Result<Finished, StoreError> {
        let outcome = self.reports.carry_out(report).await;
        outcome.unwrap_or_else(|| Err(ended()))
    }
}

fn ended() -> StoreError {
    StoreError::Database(database::DatabaseError::Unavailable("the service is ending".into()))
}

impl Hot {
    /// One transaction for all; when it fails, one for each, so that no item harms another.
    async fn submit(&self, batch: Vec<Submission>) -> Vec<Result<Submitted, StoreError>> {
        match self.submit_together(&batch).await {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(error) if batch.len() == 1 && !matches!(error, StoreError::Raced) => vec![Err(error)],
            Err(error) => {
                tracing::warn!(%error, size = batch.len(), "a batch of submissions failed; each is tried alone");
                let mut outcomes = Vec::with_capacity(batch.len());
                for one in &batch {
                    let alone = self.submit_together(std::slice::from_ref(one)).await;
                    outcomes.push(alone.map(|mut outcomes| outcomes.remove(0)));
                }
                outcomes
            }
        }
    }

    async fn submit_together(&self, batch: &[Submission]) -> Result<Vec<Submitted>, StoreError> {
        let mut reservations = self.waiters.reservations();
        let mut places: Vec<Option<usize>> = vec![None; batch.len()];
        let mut outcomes = {
            let mut place = |index: usize, submission: &Submission| -> Option<Grantee> {
                let demand = Demand::of(&submission.checked.spec);
                let (place, grantee) = reservations.place(submission.organization, &demand)?;
                places[index] = Some(place);
                Some(grantee)
            };
            store::submit::submit(&self.api, &self.config.lease, batch, &mut place).await?
        };
        for (index, outcome) in outcomes.iter_mut().enumerate() {
            match (outcome, places[index]) {
                (Submitted::Accepted(Some(granted)), Some(place)) => reservations.give(place, (**granted).clone()),
                (Submitted::Accepted(None), _) => {
                    let submission = &batch[index];
                    let demand = Demand::of(&submission.checked.spec);
                    self.waiters.queued(submission.organization, &demand);
                }
                _ => {}
            }
        }
        drop(reservations);
        self.outbox.wake();
        Ok(outcomes)
    }

    async fn finish(&self, batch: Vec<Report>) -> Vec<Result<Finished, StoreError>> {
        match self.finish_together(&batch).await {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(error) if batch.len() == 1 => vec![Err(error)],
            Err(error) => {
                tracing::warn!(%error, size = batch.len(), "a batch of reports failed; each is tried alone");
                let mut outcomes = Vec::with_capacity(batch.len());
                for one in &batch {
                    let alone = self.finish_together(std::slice::from_ref(one)).await;
                    outcomes.push(alone.map(|mut outcomes| outcomes.remove(0)));
                }
                outcomes
            }
        }
    }

    async fn finish_together(&self, batch: &[Report]) -> Result<Vec<Finished>, StoreError> {
        let outcomes = store::finish::finish(&self.api, batch).await?;
        for (report, outcome) in batch.iter().zip(&outcomes) {
            if matches!(outcome, Finished::Ended { replayed: false, .. }) {
                self.ended(report.reporter.organization, report.reporter.attempt);
            }
        }
        Ok(outcomes)
    }

    /// Wakes all who wait for an attempt's end.
    pub fn ended(&self, organization: OrganizationId, attempt: AttemptId) {
        self.results.notify(&organization);
        self.outputs.notify(&(organization, attempt));
        self.outbox.wake();
    }

    /// Asks for an attempt's end.
    pub async fn cancel(
        &self,
        organization: OrganizationId,
        attempt: AttemptId,
        reason: ExitReason,
        fact: Option<NewFact>,
    ) -> Result<Cancelled, StoreError> {
        let cancelled = store::cancel::cancel(&self.api, organization, attempt, reason, fact).await?;
        match cancelled {
            Cancelled::AtOnce => self.ended(organization, attempt),
            Cancelled::Requested(runner) => {
                if let Some(runner) = runner {
                    self.runners.notify(&(organization, runner));
                }
                self.outbox.wake();
            }
            Cancelled::Unknown | Cancelled::Unchanged => {}
        }
        Ok(cancelled)
    }

    /// Declares an attempt lost, if it still is, with a bundle of what output there is.
    pub async fn declare_lost(
        &self,
        database: &Database,
        organization: OrganizationId,
        attempt: AttemptId,
        cause: Cause,
    ) -> Result<Verdict, StoreError> {
        loop {
            let log = self.bundle(organization, attempt).await?;
            let terms = &self.config.lease;
            let verdict = store::lost::declare(database, terms, organization, attempt, cause, log).await?;
            match verdict {
                Verdict::OutputMoved => {}
                Verdict::Spared => return Ok(verdict),
                Verdict::Lost => {
                    self.losses.count(cause);
                    tracing::warn!(%organization, %attempt, ?cause, "an attempt is lost");
                    self.ended(organization, attempt);
                    return Ok(verdict);
                }
            }
        }
    }

    /// Bundles all durable output of a live attempt; `None` when there is none.
    pub async fn bundle(
        &self,
        organization: OrganizationId,
        attempt: AttemptId,
    ) -> Result<Option<(LogRef, u64)>, StoreError> {
        output::bundle::bundle(&self.api, &*self.blobs, organization, attempt).await
    }
}
