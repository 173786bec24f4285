//! What submissions refer to, as far as the organization has it, for a whole batch at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use database::OrgTransaction;
use execution_plane_domain::policy::CommandPolicy;
use execution_plane_domain::submission::{Checked, Known};
use kernel::Sha256Digest;
use kernel::id::{OperationId, OrganizationId};
use uuid::Uuid;

use super::error::StoreError;
use super::words;

const CONTENTS: &str =
    "SELECT sha256, size_bytes FROM contents WHERE organization_id = $1 AND sha256 = ANY ($2::bytea[])";
const ARTIFACTS: &str = "SELECT DISTINCT operation_id, name FROM artifacts
    WHERE organization_id = $1 AND operation_id = ANY ($2::uuid[]) AND name = ANY ($3::text[])";
const POLICIES: &str = "SELECT DISTINCT ON (name) name, version, body FROM command_policies
    WHERE organization_id = $1 AND name = ANY ($2::text[]) ORDER BY name, version DESC";
const RUNNER_NAMES: &str = "SELECT DISTINCT unnest(pools || name) FROM runners WHERE organization_id = $1";

/// A version of a command policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyVersion {
    pub name: String,
    pub version: u64,
    pub body: serde_json::Value,
}

/// The answers for one organization's part of a batch.
#[derive(Debug, Default)]
pub struct Lookups {
    contents: BTreeMap<Sha256Digest, u64>,
    digests: Arc<BTreeSet<Sha256Digest>>,
    artifacts: BTreeMap<OperationId, BTreeSet<String>>,
    policies: BTreeMap<String, PolicyVersion>,
    runner_names: Arc<BTreeSet<String>>,
}

impl Lookups {
    /// Looks up all that `batch` refers to. Asks only for kinds of things that it refers to.
    pub async fn of(
        transaction: &OrgTransaction,
        organization: OrganizationId,
        batch: &[&Checked],
    ) -> Result<Self, StoreError> {
        let (contents, artifacts, policies, runner_names) = futures::try_join!(
            contents(transaction, organization, batch),
            artifacts(transaction, organization, batch),
            policies(transaction, organization, batch),
            runner_names(transaction, organization),
        )?;
        Ok(Self {
            digests: Arc::new(contents.keys().copied().collect()),
            contents,
            artifacts,
            policies,
            runner_names: Arc::new(runner_names),
        })
    }

    /// What `checked` may count on.
    pub fn known(&self, checked: &Checked) -> Result<Known, StoreError> {
        let policy = self.policy(checked).map(|policy| CommandPolicy::parse(&policy.body));
        let policy = policy.transpose().map_err(|faults| {
            StoreError::corrupt("command policy")(faults.into_iter().map(|fault| fault.detail).collect::<String>())
        })?;
        let operation = &checked.spec.operation_id;
        Ok(Known {
            contents: self.digests.clone(),
            artifacts: self.artifacts.get(operation).cloned().unwrap_or_default(),
            policy,
            runner_names: self.runner_names.clone(),
        })
    }

    /// The policy version that `checked` is accepted under.
    pub fn policy(&self, checked: &Checked) -> Option<&PolicyVersion> {
        self.policies.get(checked.policy.as_ref()?)
    }

    /// The size of the content of `checked`.
    pub fn content_bytes(&self, checked: &Checked) -> Option<u64> {
        self.contents.get(&checked.spec.content.as_ref()?.sha256).copied()
    }
}

async fn contents(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    batch: &[&Checked],
) -> Result<BTreeMap<Sha256Digest, u64>, StoreError> {
    let digests: BTreeSet<Sha256Digest> = batch
        .iter()
        .filter_map(|c| Some(c.spec.content.as_ref()?.sha256))
        .collect();
    if digests.is_empty() {
        return Ok(BTreeMap::new());
    }
    let digests: Vec<&[u8]> = digests.iter().map(|digest| digest.as_bytes().as_slice()).collect();
    let statement = transaction.prepare_cached(CONTENTS).await?;
    let rows = transaction
        .query(&statement, &[&organization.as_uuid(), &digests])
        .await?;
    rows.iter()
        .map(|row| Ok((words::digest(row.get(0))?, words::count(row.get(1)))))
        .collect()
}

async fn artifacts(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    batch: &[&Checked],
) -> Result<BTreeMap<OperationId, BTreeSet<String>>, StoreError> {
    let asking = || batch.iter().filter(|checked| !checked.input_artifacts.is_empty());
    let operations: Vec<Uuid> = asking().map(|checked| checked.spec.operation_id.as_uuid()).collect();
    let names: Vec<&str> = asking()
        .flat_map(|c| c.input_artifacts.iter().map(String::as_str))
        .collect();
    let mut found: BTreeMap<OperationId, BTreeSet<String>> = BTreeMap::new();
    if operations.is_empty() {
        return Ok(found);
    }
    let statement = transaction.prepare_cached(ARTIFACTS).await?;
    let rows = transaction
        .query(&statement, &[&organization.as_uuid(), &operations, &names])
        .await?;
    for row in rows {
        found.entry(OperationId(row.get(0))).or_default().insert(row.get(1));
    }
    Ok(found)
}

async fn policies(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    batch: &[&Checked],
) -> Result<BTreeMap<String, PolicyVersion>, StoreError> {
    let names: BTreeSet<&str> = batch.iter().filter_map(|checked| checked.policy.as_deref()).collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let names: Vec<&str> = names.into_iter().collect();
    let statement = transaction.prepare_cached(POLICIES).await?;
    let rows = transaction
        .query(&statement, &[&organization.as_uuid(), &names])
        .await?;
    let policy = |row: &tokio_postgres::Row| PolicyVersion {
        name: row.get(0),
        version: words::count(row.get(1)),
        body: row.get(2),
    };
    Ok(rows
        .iter()
        .map(policy)
        .map(|policy| (policy.name.clone(), policy))
        .collect())
}

async fn runner_names(
    transaction: &OrgTransaction,
    organization: OrganizationId,
) -> Result<BTreeSet<String>, StoreError> {
    let statement = transaction.prepare_cached(RUNNER_NAMES).await?;
    let rows = transaction.query(&statement, &[&organization.as_uuid()]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
