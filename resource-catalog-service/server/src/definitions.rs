//! Registering resource types and capability definitions. Registering what is registered changes nothing.

use api_kit::{Caller, IfMatch, Problem, Tell};
use kernel::DottedName;
use resource_catalog_api::{ApplyCapabilityDefinition, ApplyResourceType, CapabilityDefinition, ResourceType};
use sqlx::{Postgres, Transaction};

use crate::catalog::Catalog;
use crate::registry::{Registered, Registry};
use crate::store::{StoreError, definitions};
use crate::wire::fault::invalid;
use crate::{clock, wire};

/// A definition after a write.
#[derive(Debug)]
pub struct Registration<T> {
    pub definition: T,
    pub version: i64,
    pub created: bool,
}

async fn locked(catalog: &Catalog, caller: &Caller) -> Result<(Transaction<'static, Postgres>, Registry), StoreError> {
    let mut transaction = catalog.database().begin(caller.organization).await?;
    let revision = definitions::lock(&mut transaction, caller.organization).await?;
    let registry = definitions::load(&mut transaction, caller.organization, revision).await?;
    Ok((transaction, registry))
}

async fn commit(mut transaction: Transaction<'static, Postgres>, caller: &Caller) -> Result<(), StoreError> {
    caller.act.record_sqlx(&mut transaction, Tell::accepted()).await?;
    failpoints::hit("catalog.definition.before_commit");
    transaction.commit().await?;
    failpoints::hit("catalog.definition.after_commit");
    Ok(())
}

fn check(if_match: IfMatch, what: &str, name: &DottedName, current: Option<&Registered>) -> Result<(), Problem> {
    match (current, if_match) {
        (Some(current), _) => if_match.check(format_args!("{what} {name}"), current.version),
        (None, IfMatch::Absent) => Ok(()),
        (None, _) => Err(Problem::version_mismatch(format_args!("{what} {name}"), 0)),
    }
}

/// Registers a resource type, or changes it.
///
/// # Errors
/// 412 when the version is another, 422 with every fault.
pub async fn put_type(
    catalog: &Catalog,
    caller: &Caller,
    name: &DottedName,
    asked: ApplyResourceType,
    if_match: IfMatch,
) -> Result<Registration<ResourceType>, Problem> {
    let (mut transaction, registry) = locked(catalog, caller).await?;
    let registered = registry.registered_types.get(name);
    let definition = wire::resource_type::definition(name.clone(), &asked);
    // What is registered already is no write, whatever version it was meant for.
    let current = registry
        .types
        .get(name)
        .filter(|current| current.definition == definition);
    if let (Some(current), Some(registered)) = (current, registered) {
        return Ok(Registration {
            definition: wire::resource_type::resource_type(current, Some(registered)),
            version: registered.version,
            created: false,
        });
    }
    check(if_match, "resource type", name, registered)?;
    let resolved = registry.types.admit(definition).map_err(invalid)?;
    let now = definitions::put_type(&mut transaction, caller.organization, name, &asked, clock::now()).await?;
    commit(transaction, caller).await?;
    Ok(Registration {
        definition: wire::resource_type::resource_type(&resolved, Some(&now)),
        version: now.version,
        created: now.version == 1,
    })
}

/// Registers a capability definition, or changes it.
///
/// # Errors
/// 412 when the version is another, 422 with every fault.
pub async fn put_capability(
    catalog: &Catalog,
    caller: &Caller,
    name: &DottedName,
    asked: ApplyCapabilityDefinition,
    if_match: IfMatch,
) -> Result<Registration<CapabilityDefinition>, Problem> {
    let (mut transaction, registry) = locked(catalog, caller).await?;
    let registered = registry.registered_capabilities.get(name);
    let definition = wire::capability::definition(name.clone(), &asked);
    let current = registry
        .capabilities
        .get(name)
        .filter(|current| current.definition == definition);
    if let (Some(current), Some(registered)) = (current, registered) {
        return Ok(Registration {
            definition: wire::capability::capability(current, registered),
            version: registered.version,
            created: false,
        });
    }
    check(if_match, "capability definition", name, registered)?;
    let resolved = registry.capabilities.admit(definition).map_err(invalid)?;
    let now = definitions::put_capability(&mut transaction, caller.organization, name, &asked, clock::now()).await?;
    commit(transaction, caller).await?;
    Ok(Registration {
        definition: wire::capability::capability(&resolved, &now),
        version: now.version,
        created: now.version == 1,
    })
}
