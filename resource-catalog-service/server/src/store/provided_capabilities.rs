//! What resources provide, a capability a row, to be searched by name and version.

use std::collections::BTreeSet;

use database::OrgTransaction;
use kernel::id::OrganizationId;
use resource_catalog_domain::Resource;
use serde_json::Value;

use super::StoreError;
use super::write::{Net, run};

/// A row of `provided_capabilities`: resource, capability, what it follows from, that one's version.
type CapabilityRow<'a> = (&'a str, &'a str, &'a str, &'a str);

fn capability_rows(resource: &Resource) -> BTreeSet<CapabilityRow<'_>> {
    let mut rows = BTreeSet::new();
    for (name, held) in &resource.provided {
        let version = held.attributes.get("version").and_then(Value::as_str).unwrap_or("");
        for capability in core::iter::once(name).chain(&held.implies) {
            rows.insert((resource.id.as_str(), capability.as_str(), name.as_str(), version));
        }
    }
    rows
}

const REMOVE_CAPABILITIES: &str = "DELETE FROM provided_capabilities AS p
USING unnest($2::text[], $3::text[], $4::text[]) AS gone (resource_id, capability, provided_as)
WHERE p.organization_id = $1 AND p.resource_id = gone.resource_id AND p.capability = gone.capability
    AND p.provided_as = gone.provided_as";

const ADD_CAPABILITIES: &str = "INSERT INTO provided_capabilities
    (organization_id, resource_id, capability, provided_as, version_text)
SELECT $1, resource_id, capability, provided_as, version_text
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS u (resource_id, capability, provided_as, version_text)";

/// Makes the rows follow what each resource provides now.
///
/// # Errors
/// The database failed.
pub(super) async fn index(
    transaction: &OrgTransaction,
    organization: OrganizationId,
    nets: &[Net<'_>],
) -> Result<(), StoreError> {
    let old: BTreeSet<_> = nets.iter().filter_map(|n| n.before).flat_map(capability_rows).collect();
    let new: BTreeSet<_> = nets.iter().map(|n| n.next).flat_map(capability_rows).collect();
    let column = |rows: &[&CapabilityRow<'_>], pick: fn(&CapabilityRow<'_>) -> String| -> Vec<String> {
        rows.iter().map(|row| pick(row)).collect()
    };
    let (resource, capability, provided_as) = (
        |r: &CapabilityRow<'_>| r.0.to_owned(),
        |r: &CapabilityRow<'_>| r.1.to_owned(),
        |r: &CapabilityRow<'_>| r.2.to_owned(),
    );
    let gone: Vec<_> = old.difference(&new).collect();
    if !gone.is_empty() {
        run(
            transaction,
            REMOVE_CAPABILITIES,
            &[
                &organization.as_uuid(),
                &column(&gone, resource),
                &column(&gone, capability),
                &column(&gone, provided_as),
            ],
        )
        .await?;
    }
    let added: Vec<_> = new.difference(&old).collect();
    if !added.is_empty() {
        run(
            transaction,
            ADD_CAPABILITIES,
            &[
                &organization.as_uuid(),
                &column(&added, resource),
                &column(&added, capability),
                &column(&added, provided_as),
                &column(&added, |r| r.3.to_owned()),
            ],
        )
        .await?;
    }
    Ok(())
}
