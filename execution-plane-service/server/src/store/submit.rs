//! Accepting attempts, many at once, and granting them to waiting runners in the same transaction.
//!
//! Invariants: one transaction for a batch, over organizations, each attempt with an outcome of its
//! own; an attempt id is accepted once in its organization, for ever; what a waiting runner is given
//! is leased in the commit that accepts it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use chrono::{DateTime, Utc};
use database::{Database, OrgTransaction, Scope};
use execution_plane_domain::attempt::{Attempt, Event, Outcome, State};
use execution_plane_domain::lease::LeaseTerms;
use execution_plane_domain::submission::{Checked, Refusal, isolation_rank};
use kernel::Sha256Digest;
use kernel::id::{AttemptId, OrganizationId};
use uuid::Uuid;

use super::error::StoreError;
use super::facts::{self, Fact};
use super::granted::{Granted, Grantee};
use super::lookups::Lookups;
use super::words;

const INSERT: &str = include_str!("submit_insert.sql");
const EXISTING: &str = "SELECT attempt_id, spec_sha256, state FROM attempts
    WHERE organization_id = $1 AND attempt_id = ANY ($2::uuid[])";

/// One attempt to accept.
#[derive(Debug, Clone)]
pub struct Submission {
    pub organization: OrganizationId,
    pub checked: Checked,
    /// The canonical bytes of the spec.
    pub spec_text: String,
    pub spec_sha256: Sha256Digest,
}

/// What became of one.
#[derive(Debug, Clone)]
pub enum Submitted {
    /// Accepted; leased at once when it came with a lease.
    Accepted(Option<Box<Granted>>),
    Replayed(State),
    Conflict,
    Refused(Refusal),
}

/// Chooses a waiting runner for a submission (by its place in the batch), or none.
pub type Placing<'a> = &'a mut (dyn FnMut(usize, &Submission) -> Option<Grantee> + Send);

/// Accepts `batch`; outcomes are in its order.
///
/// # Errors
/// The database failed: nothing of the batch was accepted (or, when the connection broke in the
/// commit, that is not known, and a repeat finds out).
pub async fn submit(
    database: &Database,
    terms: &LeaseTerms,
    batch: &[Submission],
    place: Placing<'_>,
) -> Result<Vec<Submitted>, StoreError> {
    let mut parties: BTreeMap<OrganizationId, Vec<usize>> = BTreeMap::new();
    for (index, submission) in batch.iter().enumerate() {
        parties.entry(submission.organization).or_default().push(index);
    }
    let since = Instant::now();
    let transaction = database.begin_hot(Scope::All).await?;
    let mut outcomes: Vec<Option<Submitted>> = vec![None; batch.len()];
    for (organization, indices) in parties {
        let part = Part {
            transaction: &transaction,
            organization,
            batch,
            since,
        };
        part.submit(terms, &indices, place, &mut outcomes).await?;
    }
    failpoints::hit("execution_plane.submit.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.submit.after_commit");
    Ok(outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap_or(Submitted::Conflict))
        .collect())
}

/// One organization's part of a batch.
struct Part<'a> {
    transaction: &'a OrgTransaction,
    organization: OrganizationId,
    batch: &'a [Submission],
    since: Instant,
}

/// A submission that is admitted, and whom it is given to.
struct Admitted {
    index: usize,
    grantee: Option<Grantee>,
    after: Attempt,
}

impl Part<'_> {
    async fn submit(
        &self,
        terms: &LeaseTerms,
        indices: &[usize],
        place: Placing<'_>,
        outcomes: &mut [Option<Submitted>],
    ) -> Result<(), StoreError> {
        let checked: Vec<&Checked> = indices.iter().map(|index| &self.batch[*index].checked).collect();
        let (acting, lookups) = futures::join!(
            self.transaction.act_for(self.organization),
            Lookups::of(self.transaction, self.organization, &checked),
        );
        acting?;
        let lookups = lookups?;
        let mut admitted = Vec::new();
        let mut seen = BTreeSet::new();
        for &index in indices {
            let submission = &self.batch[index];
            if let Err(refusal) = submission.checked.admit(&lookups.known(&submission.checked)?) {
                outcomes[index] = Some(Submitted::Refused(refusal));
            } else if seen.insert(submission.checked.spec.attempt_id) {
                admitted.push(Admitted::new(index, place(index, submission)));
            }
        }
        let new = self.insert(terms, &lookups, &admitted).await?;
        for one in &admitted {
            if new.contains(&self.batch[one.index].checked.spec.attempt_id) {
                outcomes[one.index] = Some(Submitted::Accepted(self.granted(one, &lookups)));
            }
        }
        self.settle_existing(indices, outcomes).await
    }

    async fn insert(
        &self,
        terms: &LeaseTerms,
        lookups: &Lookups,
        admitted: &[Admitted],
    ) -> Result<BTreeSet<AttemptId>, StoreError> {
        if admitted.is_empty() {
            return Ok(BTreeSet::new());
        }
        let column = |one: &Admitted| &self.batch[one.index].checked.spec;
        let specs: Vec<_> = admitted.iter().map(column).collect();
        let policies: Vec<_> = admitted
            .iter()
            .map(|one| lookups.policy(&self.batch[one.index].checked))
            .collect();
        let labels: Vec<String> = specs
            .iter()
            .map(|spec| serde_json::to_string(&spec.runner.labels).unwrap_or_else(|_| "{}".into()))
            .collect();
        let statement = self.transaction.prepare_cached(INSERT).await?;
        let rows = self
            .transaction
            .query(
                &statement,
                &[
                    &self.organization.as_uuid(),
                    &specs.iter().map(|s| s.attempt_id.as_uuid()).collect::<Vec<Uuid>>(),
                    &specs.iter().map(|s| s.operation_id.as_uuid()).collect::<Vec<Uuid>>(),
                    &specs.iter().map(|s| s.plan_node_id.as_str()).collect::<Vec<_>>(),
                    &specs.iter().map(|s| s.job_type.as_str()).collect::<Vec<_>>(),
                    &specs.iter().map(|s| s.target.environment.as_str()).collect::<Vec<_>>(),
                    &specs.iter().map(|s| s.runner.name.as_str()).collect::<Vec<_>>(),
                    &labels,
                    &specs
                        .iter()
                        .map(|s| isolation_rank(s.runner.isolation))
                        .collect::<Vec<_>>(),
                    &admitted
                        .iter()
                        .map(|a| self.batch[a.index].spec_text.as_str())
                        .collect::<Vec<_>>(),
                    &admitted
                        .iter()
                        .map(|a| self.batch[a.index].spec_sha256.as_bytes().as_slice())
                        .collect::<Vec<_>>(),
                    &policies.iter().map(|p| p.map(|p| p.name.as_str())).collect::<Vec<_>>(),
                    &policies
                        .iter()
                        .map(|p| p.map(|p| words::column(p.version)))
                        .collect::<Vec<_>>(),
                    &admitted
                        .iter()
                        .map(|a| lookups.content_bytes(&self.batch[a.index].checked).map(words::column))
                        .collect::<Vec<_>>(),
                    &admitted.iter().map(|a| a.after.state.as_str()).collect::<Vec<_>>(),
                    &admitted
                        .iter()
                        .map(|a| words::column(a.after.epoch))
                        .collect::<Vec<_>>(),
                    &admitted
                        .iter()
                        .map(|a| a.grantee.map(|g| g.runner.as_uuid()))
                        .collect::<Vec<_>>(),
                    &admitted
                        .iter()
                        .map(|a| a.grantee.map(|g| words::column(g.session)))
                        .collect::<Vec<_>>(),
                    &terms.lease.as_seconds_f64(),
                ],
            )
            .await?;
        let new: BTreeMap<AttemptId, DateTime<Utc>> =
            rows.iter().map(|row| (AttemptId(row.get(0)), row.get(1))).collect();
        let accepted = admitted.iter().filter_map(|one| {
            let spec = &self.batch[one.index].checked.spec;
            let at = new.get(&spec.attempt_id)?;
            Some(Fact::accepted(spec, one.after.state, *at))
        });
        facts::record(self.transaction, self.organization, accepted.collect()).await?;
        Ok(new.into_keys().collect())
    }

    fn granted(&self, one: &Admitted, lookups: &Lookups) -> Option<Box<Granted>> {
        one.grantee?;
        let checked = &self.batch[one.index].checked;
        Some(Box::new(Granted {
            attempt_id: checked.spec.attempt_id,
            epoch: one.after.epoch,
            spec: checked.spec.clone(),
            policy: lookups.policy(checked).cloned(),
            content_bytes: lookups.content_bytes(checked),
            cancel_requested: false,
            since: self.since,
        }))
    }

    /// What was not new was accepted before: the same, or another under the same id.
    async fn settle_existing(&self, indices: &[usize], outcomes: &mut [Option<Submitted>]) -> Result<(), StoreError> {
        let open: Vec<usize> = indices
            .iter()
            .copied()
            .filter(|index| outcomes[*index].is_none())
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = open
            .iter()
            .map(|index| self.batch[*index].checked.spec.attempt_id.as_uuid())
            .collect();
        let statement = self.transaction.prepare_cached(EXISTING).await?;
        let rows = self
            .transaction
            .query(&statement, &[&self.organization.as_uuid(), &ids])
            .await?;
        let mut existing: HashMap<AttemptId, (Sha256Digest, State)> = HashMap::new();
        for row in rows {
            let known = (words::digest(row.get(1))?, words::state(row.get(2))?);
            existing.insert(AttemptId(row.get(0)), known);
        }
        for index in open {
            let submission = &self.batch[index];
            outcomes[index] = Some(match existing.get(&submission.checked.spec.attempt_id) {
                Some((digest, state)) if *digest == submission.spec_sha256 => Submitted::Replayed(*state),
                _ => Submitted::Conflict,
            });
        }
        Ok(())
    }
}

impl Admitted {
    fn new(index: usize, grantee: Option<Grantee>) -> Self {
        let after = match grantee.map(|_| Attempt::QUEUED.apply(Event::Grant)) {
            Some(Outcome::Changed(after)) => after,
            _ => Attempt::QUEUED,
        };
        Self { index, grantee, after }
    }
}
