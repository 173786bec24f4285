//! Accepting attempts, many at once, and granting them to waiting runners in the same transaction.
//!
//! Invariants: one transaction for a batch, over organizations, each attempt with an outcome of its
//! own; an attempt id is accepted once in its organization, for ever; what a waiting runner is given
//! is leased in the commit that accepts it.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use audit::NewFact;
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
// One row at least, for the clock.
const EXISTING: &str = "SELECT clock_timestamp(), a.attempt_id, a.spec_sha256, a.state
    FROM (SELECT) AS clock
    LEFT JOIN attempts AS a ON a.organization_id = $1 AND a.attempt_id = ANY ($2::uuid[])";

/// One attempt to accept.
#[derive(Debug, Clone)]
pub struct Submission {
    pub organization: OrganizationId,
    pub checked: Checked,
    /// The canonical bytes of the spec.
    pub spec_text: String,
    pub spec_sha256: Sha256Digest,
    /// For the audit, once it is accepted.
    pub fact: Option<NewFact>,
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
    let transaction = database.begin_pipelined(Scope::All).await?;
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

/// What was accepted before, and the database's clock.
#[derive(Default)]
struct Existing {
    now: DateTime<Utc>,
    known: HashMap<AttemptId, (Sha256Digest, State)>,
}

impl Part<'_> {
    /// Two round trips: what is there already and what the batch refers to; then what is new.
    async fn submit(
        &self,
        terms: &LeaseTerms,
        indices: &[usize],
        place: Placing<'_>,
        outcomes: &mut [Option<Submitted>],
    ) -> Result<(), StoreError> {
        let checked: Vec<&Checked> = indices.iter().map(|index| &self.batch[*index].checked).collect();
        let (acting, lookups, existing) = futures::join!(
            self.transaction.act_for(self.organization),
            Lookups::of(self.transaction, self.organization, &checked),
            self.existing(&checked),
        );
        acting?;
        self.transaction.begun().await?;
        let (lookups, mut existing) = (lookups?, existing?);
        let mut admitted = Vec::new();
        for &index in indices {
            let submission = &self.batch[index];
            let id = submission.checked.spec.attempt_id;
            if let Some((digest, state)) = existing.known.get(&id) {
                let is_same = *digest == submission.spec_sha256;
                let outcome = if is_same {
                    Submitted::Replayed(*state)
                } else {
                    Submitted::Conflict
                };
                outcomes[index] = Some(outcome);
            } else if let Err(refusal) = submission.checked.admit(&lookups.known(&submission.checked)?) {
                outcomes[index] = Some(Submitted::Refused(refusal));
            } else {
                let one = Admitted::new(index, place(index, submission));
                // The same attempt again in this batch is a repeat of this one.
                existing.known.insert(id, (submission.spec_sha256, one.after.state));
                outcomes[index] = Some(Submitted::Accepted(self.granted(&one, &lookups)));
                admitted.push(one);
            }
        }
        self.insert(terms, &lookups, &admitted, existing.now).await
    }

    async fn existing(&self, checked: &[&Checked]) -> Result<Existing, StoreError> {
        let ids: Vec<Uuid> = checked
            .iter()
            .map(|checked| checked.spec.attempt_id.as_uuid())
            .collect();
        let statement = self.transaction.prepare_cached(EXISTING).await?;
        let rows = self
            .transaction
            .query(&statement, &[&self.organization.as_uuid(), &ids])
            .await?;
        let mut existing = Existing::default();
        for row in rows {
            existing.now = row.get(0);
            if let Some(id) = row.get::<_, Option<Uuid>>(1) {
                let known = (words::digest(row.get(2))?, words::state(row.get(3))?);
                existing.known.insert(AttemptId(id), known);
            }
        }
        Ok(existing)
    }

    async fn insert(
        &self,
        terms: &LeaseTerms,
        lookups: &Lookups,
        admitted: &[Admitted],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if admitted.is_empty() {
            return Ok(());
        }
        let facts = admitted
            .iter()
            .map(|one| Fact::accepted(&self.batch[one.index].checked.spec, one.after.state, now))
            .collect();
        let audited: Vec<NewFact> = admitted
            .iter()
            .filter_map(|one| self.batch[one.index].fact.clone())
            .collect();
        let (inserted, recorded, kept) = futures::join!(
            self.insert_rows(terms, lookups, admitted),
            facts::record(self.transaction, self.organization, facts),
            audit::append(self.transaction, &audited),
        );
        kept?;
        if inserted? != admitted.len() {
            return Err(StoreError::Raced);
        }
        recorded
    }

    async fn insert_rows(
        &self,
        terms: &LeaseTerms,
        lookups: &Lookups,
        admitted: &[Admitted],
    ) -> Result<usize, StoreError> {
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
        Ok(rows.len())
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
