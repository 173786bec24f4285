//! A runner asks for work: what it holds is compared with what is recorded, then it is given what
//! is queued for it.
//!
//! Invariants: only the newest session of a runner gets anything; an attempt is granted once; what
//! an earlier answer failed to deliver to this very session is delivered again under the same
//! epoch; a runner never has more than its capacity.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use contracts::JobSpec;
use database::{Database, OrgTransaction};
use execution_plane_domain::attempt::State;
use execution_plane_domain::lease::LeaseTerms;
use execution_plane_domain::routing::Offer;
use execution_plane_domain::submission::isolation_rank;
use kernel::id::{AttemptId, OrganizationId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::StoreError;
use super::facts::{self, Fact};
use super::granted::{Granted, Grantee};
use super::lookups::PolicyVersion;
use super::words;

const RUNNER: &str = "SELECT session, name, pools, labels, job_types, isolation, environments, draining, capacity
    FROM runners WHERE organization_id = $1 AND runner_id = $2";
const SEEN: &str = "UPDATE runners SET last_seen_at = clock_timestamp()
    WHERE organization_id = $1 AND runner_id = $2 AND last_seen_at < clock_timestamp() - interval '1 second'";
const LEASES: &str = "SELECT l.attempt_id, l.epoch, l.session, l.cancel_requested, a.state
    FROM leases AS l JOIN attempts AS a USING (organization_id, attempt_id)
    WHERE l.organization_id = $1 AND l.runner_id = $2 ORDER BY l.attempt_id";
const ADOPT: &str = "UPDATE leases SET session = $4, deadline_at = clock_timestamp() + make_interval(secs => $5)
    WHERE organization_id = $1 AND runner_id = $2 AND attempt_id = ANY ($3::uuid[]) AND session < $4";
const DELIVER_AGAIN: &str = include_str!("pull_deliver_again.sql");
const CLAIM: &str = include_str!("pull_claim.sql");

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Puller {
    pub organization: OrganizationId,
    pub grantee: Grantee,
    pub free_slots: u32,
}

/// What a look at the store gave.
#[derive(Debug)]
pub enum Pulled {
    /// A newer session of this runner exists, or the runner is not known.
    Superseded,
    Current(Box<Found>),
}

/// For a current session.
#[derive(Debug)]
pub struct Found {
    pub leases: Vec<Granted>,
    /// Held by the runner in vain.
    pub gone: Vec<AttemptId>,
    /// Left behind by an earlier session: to be declared lost.
    pub abandoned: Vec<AttemptId>,
    pub offer: Offer,
    /// How many more it may be given after these.
    pub free: u32,
}

/// Compares and claims.
///
/// # Errors
/// The database failed; then nothing was granted.
pub async fn pull(
    database: &Database,
    terms: &LeaseTerms,
    puller: Puller,
    held: &[(AttemptId, u64)],
) -> Result<Pulled, StoreError> {
    let since = Instant::now();
    let transaction = database.begin_pipelined(puller.organization).await?;
    let look = Look {
        transaction: &transaction,
        puller,
        since,
    };
    let (runner, leases) = futures::try_join!(look.runner(), look.leases())?;
    let Some((session, offer, capacity)) = runner else {
        return Ok(Pulled::Superseded);
    };
    if session != puller.grantee.session {
        return Ok(Pulled::Superseded);
    }
    transaction.begun().await?;
    let compared = Compared::of(&leases, held, session);
    look.adopt(terms, &compared.adopted).await?;
    let mut granted = look.deliver_again(terms, &compared.undelivered).await?;
    let used = u32::try_from(leases.len() - compared.abandoned.len()).unwrap_or(u32::MAX);
    let told = puller
        .free_slots
        .saturating_sub(u32::try_from(granted.len()).unwrap_or(u32::MAX));
    let mut free = if offer.draining {
        0
    } else {
        told.min(capacity.saturating_sub(used))
    };
    let claimed = if free > 0 {
        look.claim(terms, &offer, free).await?
    } else {
        Vec::new()
    };
    free -= u32::try_from(claimed.len()).unwrap_or(free);
    if claimed.is_empty() && granted.is_empty() && compared.adopted.is_empty() {
        // Nothing was promised: only the sign of life is written.
        transaction.batch_execute("SET LOCAL synchronous_commit = off").await?;
    }
    granted.extend(claimed);
    failpoints::hit("execution_plane.lease.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.lease.after_commit");
    Ok(Pulled::Current(Box::new(Found {
        leases: granted,
        gone: compared.gone,
        abandoned: compared.abandoned,
        offer,
        free,
    })))
}

/// One live lease of the runner.
struct Recorded {
    id: AttemptId,
    epoch: u64,
    session: u64,
    state: State,
}

/// What the runner holds against what is recorded.
#[derive(Default)]
struct Compared {
    adopted: Vec<AttemptId>,
    undelivered: Vec<AttemptId>,
    abandoned: Vec<AttemptId>,
    gone: Vec<AttemptId>,
}

impl Compared {
    fn of(leases: &[Recorded], held: &[(AttemptId, u64)], session: u64) -> Self {
        let holds: BTreeSet<(AttemptId, u64)> = held.iter().copied().collect();
        let mut compared = Self::default();
        for lease in leases {
            let is_held = holds.contains(&(lease.id, lease.epoch));
            match (lease.session < session, is_held) {
                (true, true) => compared.adopted.push(lease.id),
                (true, false) => compared.abandoned.push(lease.id),
                // `Cancelling` as well: it may have been asked for before the delivery.
                (false, false) if matches!(lease.state, State::Leased | State::Cancelling) => {
                    compared.undelivered.push(lease.id);
                }
                (false, _) => {}
            }
        }
        let recorded: BTreeMap<AttemptId, u64> = leases.iter().map(|lease| (lease.id, lease.epoch)).collect();
        let in_vain = held.iter().filter(|(id, epoch)| recorded.get(id) != Some(epoch));
        compared.gone.extend(in_vain.map(|(id, _)| *id));
        compared
    }
}

struct Look<'a> {
    transaction: &'a OrgTransaction,
    puller: Puller,
    since: Instant,
}

impl Look<'_> {
    fn organization(&self) -> Uuid {
        self.puller.organization.as_uuid()
    }

    fn runner_id(&self) -> Uuid {
        self.puller.grantee.runner.as_uuid()
    }

    fn session(&self) -> i64 {
        words::column(self.puller.grantee.session)
    }

    async fn runner(&self) -> Result<Option<(u64, Offer, u32)>, StoreError> {
        let key: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&self.organization(), &self.runner_id()];
        let select = self.transaction.prepare_cached(RUNNER).await?;
        let seen = self.transaction.prepare_cached(SEEN).await?;
        let (row, _) = futures::try_join!(
            self.transaction.query_opt(&select, &key),
            self.transaction.execute(&seen, &key)
        )?;
        row.as_ref().map(read_offer).transpose()
    }

    async fn leases(&self) -> Result<Vec<Recorded>, StoreError> {
        let statement = self.transaction.prepare_cached(LEASES).await?;
        let rows = self
            .transaction
            .query(&statement, &[&self.organization(), &self.runner_id()])
            .await?;
        let read = |row: &Row| {
            Ok(Recorded {
                id: AttemptId(row.get(0)),
                epoch: words::count(row.get(1)),
                session: words::count(row.get(2)),
                state: words::state(row.get(4))?,
            })
        };
        rows.iter().map(read).collect()
    }

    async fn adopt(&self, terms: &LeaseTerms, adopted: &[AttemptId]) -> Result<(), StoreError> {
        if adopted.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = adopted.iter().map(|id| id.as_uuid()).collect();
        let statement = self.transaction.prepare_cached(ADOPT).await?;
        let lease = terms.lease.as_seconds_f64();
        self.transaction
            .execute(
                &statement,
                &[&self.organization(), &self.runner_id(), &ids, &self.session(), &lease],
            )
            .await?;
        Ok(())
    }

    async fn deliver_again(&self, terms: &LeaseTerms, undelivered: &[AttemptId]) -> Result<Vec<Granted>, StoreError> {
        if undelivered.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = undelivered.iter().map(|id| id.as_uuid()).collect();
        let statement = self.transaction.prepare_cached(DELIVER_AGAIN).await?;
        let lease = terms.lease.as_seconds_f64();
        let rows = self
            .transaction
            .query(
                &statement,
                &[&self.organization(), &self.runner_id(), &ids, &self.session(), &lease],
            )
            .await?;
        rows.iter().map(|row| self.granted(row)).collect()
    }

    async fn claim(&self, terms: &LeaseTerms, offer: &Offer, free: u32) -> Result<Vec<Granted>, StoreError> {
        let Some(strongest) = offer.strongest() else {
            return Ok(Vec::new());
        };
        let labels = serde_json::to_string(&offer.labels).map_err(StoreError::corrupt("labels"))?;
        let job_types: Vec<&str> = offer.job_types.iter().map(|job_type| job_type.as_str()).collect();
        let statement = self.transaction.prepare_cached(CLAIM).await?;
        let rows = self
            .transaction
            .query(
                &statement,
                &[
                    &self.organization(),
                    &offer.names.iter().collect::<Vec<_>>(),
                    &job_types,
                    &isolation_rank(strongest),
                    &offer.environments.iter().collect::<Vec<_>>(),
                    &labels,
                    &i64::from(free),
                    &self.runner_id(),
                    &self.session(),
                    &terms.lease.as_seconds_f64(),
                ],
            )
            .await?;
        let granted = rows
            .iter()
            .map(|row| self.granted(row))
            .collect::<Result<Vec<_>, _>>()?;
        let leased = granted
            .iter()
            .zip(&rows)
            .map(|(one, row)| Fact::leased(&one.spec, words::count(row.get(8)), row.get(9)))
            .collect();
        facts::record(self.transaction, self.puller.organization, leased).await?;
        Ok(granted)
    }

    fn granted(&self, row: &Row) -> Result<Granted, StoreError> {
        let spec: &str = row.get(2);
        let spec: JobSpec = serde_json::from_str(spec).map_err(StoreError::corrupt("JobSpec"))?;
        let policy = row.get::<_, Option<String>>(4).map(|name| PolicyVersion {
            name,
            version: words::count(row.get::<_, Option<i64>>(5).unwrap_or(0)),
            body: row.get::<_, Option<serde_json::Value>>(6).unwrap_or_default(),
        });
        Ok(Granted {
            attempt_id: AttemptId(row.get(0)),
            epoch: words::count(row.get(1)),
            spec,
            policy,
            content_bytes: row.get::<_, Option<i64>>(3).map(words::count),
            cancel_requested: row.get(7),
            since: self.since,
        })
    }
}

fn read_offer(row: &Row) -> Result<(u64, Offer, u32), StoreError> {
    let name: String = row.get(1);
    let pools: Vec<String> = row.get(2);
    let labels: serde_json::Value = row.get(3);
    let job_types: Vec<&str> = row.get(4);
    let isolation: Vec<i16> = row.get(5);
    let environments: Vec<String> = row.get(6);
    let offer = Offer {
        names: pools.into_iter().chain([name]).collect(),
        labels: serde_json::from_value(labels).map_err(StoreError::corrupt("labels"))?,
        job_types: job_types.into_iter().map(words::job_type).collect::<Result<_, _>>()?,
        isolation: isolation.into_iter().map(words::isolation).collect::<Result<_, _>>()?,
        environments: environments.into_iter().collect(),
        draining: row.get(7),
    };
    let capacity: i32 = row.get(8);
    Ok((words::count(row.get(0)), offer, u32::try_from(capacity).unwrap_or(0)))
}
