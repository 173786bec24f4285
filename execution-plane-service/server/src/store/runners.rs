//! Registered runners.

use api_kit::{Act, Tell};
use audit::NewFact;
use chrono::{DateTime, Utc};
use contracts::{Isolation, JobType};
use database::Database;
use execution_plane_domain::routing::Offer;
use execution_plane_domain::submission::isolation_rank;
use kernel::id::{OrganizationId, RunnerId};
use uuid::Uuid;

use super::error::StoreError;
use super::words;

/// What a runner registers with.
#[derive(Debug, Clone)]
pub struct Registration {
    pub name: String,
    pub pools: Vec<String>,
    pub labels: serde_json::Value,
    pub job_types: Vec<JobType>,
    pub isolation: Vec<Isolation>,
    pub capacity: u32,
    pub environments: Vec<String>,
    pub software_version: Option<String>,
}

/// A runner as it is stored.
#[derive(Debug, Clone)]
pub struct StoredRunner {
    pub id: RunnerId,
    pub name: String,
    pub offer: Offer,
    pub pools: Vec<String>,
    pub capacity: u32,
    pub software_version: Option<String>,
    pub version: u64,
    pub last_seen_at: DateTime<Utc>,
    pub registered_at: DateTime<Utc>,
    pub in_use: u32,
    /// Not heard from for longer than a lease.
    pub silent: bool,
}

/// Opens a session of the runner of that name: the next one for a new `instance`, the same for the
/// same. `id` is taken when the name is new.
///
/// # Errors
/// The database failed.
pub async fn open_session(
    database: &Database,
    organization: OrganizationId,
    id: RunnerId,
    instance: Uuid,
    registration: &Registration,
    act: &Act,
) -> Result<(RunnerId, u64), StoreError> {
    let job_types: Vec<String> = registration.job_types.iter().map(|j| j.as_str().to_owned()).collect();
    let isolation: Vec<i16> = registration.isolation.iter().map(|i| isolation_rank(*i)).collect();
    let mut transaction = database.begin(organization).await?;
    let row = sqlx::query!(
        "INSERT INTO runners AS r (organization_id, runner_id, name, pools, labels, job_types, isolation, capacity,
            environments, software_version, instance, session, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, 1)
        ON CONFLICT ON CONSTRAINT runners_name DO UPDATE
        SET pools = excluded.pools, labels = excluded.labels, job_types = excluded.job_types,
            isolation = excluded.isolation, capacity = excluded.capacity, environments = excluded.environments,
            software_version = excluded.software_version, instance = excluded.instance,
            session = r.session + (r.instance <> excluded.instance)::int, version = r.version + 1,
            last_seen_at = now()
        RETURNING runner_id, session",
        organization.as_uuid(),
        id.as_uuid(),
        registration.name,
        &registration.pools,
        registration.labels,
        &job_types,
        &isolation,
        i32::try_from(registration.capacity).unwrap_or(i32::MAX),
        &registration.environments,
        registration.software_version,
        instance,
    )
    .fetch_one(&mut *transaction)
    .await?;
    let tell = Tell::accepted().on(format!("runners/{}", row.runner_id));
    let tell = tell
        .with("name", registration.name.as_str())
        .with("session", row.session);
    act.record_sqlx(&mut transaction, tell).await?;
    failpoints::hit("execution_plane.session.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.session.after_commit");
    Ok((RunnerId(row.runner_id), words::count(row.session)))
}

/// The name and the newest session of a runner.
///
/// # Errors
/// The database failed.
pub async fn identity(
    database: &Database,
    organization: OrganizationId,
    id: RunnerId,
) -> Result<Option<(String, u64)>, StoreError> {
    let mut transaction = database.begin(organization).await?;
    let row = sqlx::query!(
        "SELECT name, session FROM runners WHERE organization_id = $1 AND runner_id = $2",
        organization.as_uuid(),
        id.as_uuid()
    )
    .fetch_optional(&mut *transaction)
    .await?;
    Ok(row.map(|row| (row.name, words::count(row.session))))
}

struct Row {
    runner_id: Uuid,
    name: String,
    pools: Vec<String>,
    labels: serde_json::Value,
    job_types: Vec<String>,
    isolation: Vec<i16>,
    capacity: i32,
    environments: Vec<String>,
    software_version: Option<String>,
    draining: bool,
    version: i64,
    last_seen_at: DateTime<Utc>,
    registered_at: DateTime<Utc>,
    in_use: i64,
    silent: bool,
}

/// A page of runners by id, after `after`.
///
/// # Errors
/// The database failed.
pub async fn list(
    database: &Database,
    organization: OrganizationId,
    lease_seconds: f64,
    after: Option<RunnerId>,
    limit: i64,
) -> Result<Vec<StoredRunner>, StoreError> {
    let mut transaction = database.begin(organization).await?;
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT runner_id, name, pools, labels, job_types, isolation, capacity, environments, software_version,
            draining, version, last_seen_at, registered_at,
            (SELECT count(*) FROM leases AS l
                WHERE l.organization_id = r.organization_id AND l.runner_id = r.runner_id) AS "in_use!",
            last_seen_at + make_interval(secs => $2) < clock_timestamp() AS "silent!"
        FROM runners AS r
        WHERE organization_id = $1 AND ($3::uuid IS NULL OR runner_id > $3)
        ORDER BY runner_id LIMIT $4"#,
        organization.as_uuid(),
        lease_seconds,
        after.map(RunnerId::as_uuid),
        limit
    )
    .fetch_all(&mut *transaction)
    .await?;
    rows.into_iter().map(Row::read).collect()
}

/// One runner.
///
/// # Errors
/// The database failed.
pub async fn get(
    database: &Database,
    organization: OrganizationId,
    lease_seconds: f64,
    id: RunnerId,
) -> Result<Option<StoredRunner>, StoreError> {
    let mut transaction = database.begin(organization).await?;
    let row = sqlx::query_as!(
        Row,
        r#"SELECT runner_id, name, pools, labels, job_types, isolation, capacity, environments, software_version,
            draining, version, last_seen_at, registered_at,
            (SELECT count(*) FROM leases AS l
                WHERE l.organization_id = r.organization_id AND l.runner_id = r.runner_id) AS "in_use!",
            last_seen_at + make_interval(secs => $2) < clock_timestamp() AS "silent!"
        FROM runners AS r WHERE organization_id = $1 AND runner_id = $3"#,
        organization.as_uuid(),
        lease_seconds,
        id.as_uuid()
    )
    .fetch_optional(&mut *transaction)
    .await?;
    row.map(Row::read).transpose()
}

/// Whether a runner is to drain.
#[derive(Debug)]
pub struct Draining {
    /// The version of the runner that it is meant for.
    pub version: u64,
    pub draining: bool,
    pub fact: Option<NewFact>,
}

/// Sets whether it drains, at that version. Answers whether the version still held.
///
/// # Errors
/// The database failed.
pub async fn set_draining(
    database: &Database,
    organization: OrganizationId,
    id: RunnerId,
    change: Draining,
) -> Result<bool, StoreError> {
    let mut transaction = database.begin(organization).await?;
    let done = sqlx::query!(
        "UPDATE runners SET draining = $4, version = version + 1
        WHERE organization_id = $1 AND runner_id = $2 AND version = $3",
        organization.as_uuid(),
        id.as_uuid(),
        words::column(change.version),
        change.draining
    )
    .execute(&mut *transaction)
    .await?;
    if done.rows_affected() == 1 {
        audit::append_sqlx(&mut transaction, change.fact.as_slice()).await?;
    }
    failpoints::hit("execution_plane.drain.before_commit");
    transaction.commit().await?;
    failpoints::hit("execution_plane.drain.after_commit");
    Ok(done.rows_affected() == 1)
}

impl Row {
    fn read(self) -> Result<StoredRunner, StoreError> {
        let job_types = self
            .job_types
            .iter()
            .map(|word| words::job_type(word))
            .collect::<Result<_, _>>()?;
        let isolation = self
            .isolation
            .iter()
            .map(|rank| words::isolation(*rank))
            .collect::<Result<_, _>>()?;
        Ok(StoredRunner {
            id: RunnerId(self.runner_id),
            offer: Offer {
                names: self.pools.iter().chain([&self.name]).cloned().collect(),
                labels: serde_json::from_value(self.labels).map_err(StoreError::corrupt("labels"))?,
                job_types,
                isolation,
                environments: self.environments.into_iter().collect(),
                draining: self.draining,
            },
            name: self.name,
            pools: self.pools,
            capacity: u32::try_from(self.capacity).unwrap_or(0),
            software_version: self.software_version,
            version: words::count(self.version),
            last_seen_at: self.last_seen_at,
            registered_at: self.registered_at,
            in_use: u32::try_from(self.in_use).unwrap_or(u32::MAX),
            silent: self.silent,
        })
    }
}
