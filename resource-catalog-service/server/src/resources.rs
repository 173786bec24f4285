//! Writing resources one at a time: what is asked of them, their edges, what observers see.
//!
//! Each write is one transaction: lock the row, let the domain decide, write the version with its change record. A
//! write that changes nothing commits nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_kit::{Caller, Claim, IdempotentRequest, IfMatch, Problem, StoredResponse, Tell, idempotency_hot};
use contracts::EvidenceRef;
use database::OrgTransaction;
use kernel::id::{OrganizationId, ResourceUid};
use kernel::{DottedName, ResourceId};
use resource_catalog_domain::apply::{self, Identity};
use resource_catalog_domain::{Change, Desired, Edge, EdgeFacts, Fault, Resource, observe};
use serde_json::{Map, Value};

use crate::catalog::Catalog;
use crate::clock;
use crate::registry::Registry;
use crate::store::write::{Cause, Write, write};
use crate::store::{StoreError, definitions, edge_facts, resource};
use crate::wire::fault::invalid;
use crate::wire::resource as wire;

/// How often a write is tried when another creates the same resource at the same moment.
const TRIES: usize = 3;

/// A resource after a write.
#[derive(Debug)]
pub struct Written {
    pub resource: Resource,
    pub created: bool,
}

/// One write under way.
struct Session<'a> {
    catalog: &'a Catalog,
    caller: &'a Caller,
    transaction: OrgTransaction,
    registry: Arc<Registry>,
    current: Option<Resource>,
}

impl<'a> Session<'a> {
    async fn open(catalog: &'a Catalog, caller: &'a Caller, id: &ResourceId) -> Result<Self, StoreError> {
        let transaction = catalog.database().begin_hot(caller.organization).await?;
        Self::within(catalog, caller, transaction, id).await
    }

    async fn within(
        catalog: &'a Catalog,
        caller: &'a Caller,
        transaction: OrgTransaction,
        id: &ResourceId,
    ) -> Result<Self, StoreError> {
        let ids = [id.as_str()];
        let (mut found, revision) = futures::try_join!(
            resource::lock(&transaction, caller.organization, &ids),
            definitions::revision_hot(&transaction, caller.organization),
        )?;
        let registry = catalog.registry_at(caller.organization, revision).await?;
        Ok(Self {
            catalog,
            caller,
            transaction,
            registry,
            current: found.pop(),
        })
    }

    fn existing(&self, id: &ResourceId) -> Result<&Resource, Problem> {
        self.current.as_ref().ok_or_else(|| no_resource(id))
    }

    /// What is known of those of `edges` that the resource does not have yet.
    async fn facts<'e>(
        &self,
        id: &ResourceId,
        resource_type: &DottedName,
        edges: impl IntoIterator<Item = &'e Edge>,
    ) -> Result<BTreeMap<Edge, EdgeFacts>, StoreError> {
        let known = |edge: &Edge| self.current.as_ref().is_some_and(|r| r.edges.contains(edge));
        let new: Vec<&Edge> = edges
            .into_iter()
            .filter(|e| !known(e))
            .take(resource_catalog_domain::limits::MAX_EDGES + 1)
            .collect();
        let family: Vec<String> = self
            .registry
            .types
            .derived(resource_type)
            .iter()
            .map(DottedName::to_string)
            .collect();
        edge_facts::gather(&self.transaction, self.caller.organization, id, &family, &new).await
    }

    /// Writes `next` without committing; None when the resource that was to be created exists by now.
    async fn put(&self, next: Resource) -> Result<Option<Resource>, StoreError> {
        let change = match &self.current {
            Some(before) => Change::between(before, next),
            None => Change::created(next),
        };
        let resource = change.next.clone();
        let write_it = Write {
            before: self.current.clone(),
            change,
            cause: Cause {
                actor: self.caller.subject.clone(),
                command: None,
                traceparent: None,
            },
        };
        let done = write(&self.transaction, self.caller.organization, &[write_it]).await?;
        Ok(done.then_some(resource))
    }

    async fn commit(self) -> Result<(), StoreError> {
        self.commit_telling(Tell::accepted()).await
    }

    async fn commit_telling(self, tell: Tell) -> Result<(), StoreError> {
        self.caller.act.record(&self.transaction, tell).await?;
        failpoints::hit("catalog.resource.before_commit");
        self.transaction.commit().await?;
        failpoints::hit("catalog.resource.after_commit");
        self.catalog.changed();
        Ok(())
    }

    /// Writes the next version of an existing resource, if there is one.
    async fn finish(self, next: Option<Resource>) -> Result<Resource, Problem> {
        match (next, &self.current) {
            (Some(next), _) => {
                let Some(resource) = self.put(next).await? else {
                    return Err(Problem::unavailable("The resource is being created by someone else."));
                };
                self.commit().await?;
                Ok(resource)
            }
            (None, Some(current)) => Ok(current.clone()),
            (None, None) => Err(Problem::internal()),
        }
    }
}

/// Holds a precondition against a decision. What is so already is no write, whatever version it was meant for: a repeat
/// of a write whose answer was lost is answered like the first.
fn guarded(
    if_match: IfMatch,
    current: &Resource,
    next: Result<Option<Resource>, Vec<Fault>>,
) -> Result<Option<Resource>, Problem> {
    if next != Ok(None) {
        if_match.check(&current.id, current.version)?;
    }
    next.map_err(invalid)
}

/// 404 for a resource that there is not, or that another organization has.
pub fn no_resource(id: &ResourceId) -> Problem {
    Problem::not_found(format_args!("resource {id}"))
}

fn identity(organization: OrganizationId, id: &ResourceId) -> Identity {
    Identity {
        organization,
        id: id.clone(),
        uid: ResourceUid::new_v7(),
        last_version: 0,
    }
}

/// Makes a resource what it is asked to be, creating it where it is missing.
///
/// # Errors
/// 412 when the version is another, 422 with every fault.
pub async fn put(
    catalog: &Catalog,
    caller: &Caller,
    id: &ResourceId,
    asked: Desired,
    if_match: IfMatch,
) -> Result<Written, Problem> {
    for _ in 0..TRIES {
        let session = Session::open(catalog, caller, id).await?;
        let facts = session
            .facts(id, &asked.resource_type, asked.edges.iter().flatten())
            .await?;
        let types = &session.registry.types;
        if let Some(current) = &session.current {
            let next = apply::apply(current, asked, &facts, types, clock::now());
            let next = guarded(if_match, current, next)?;
            let resource = session.finish(next).await?;
            return Ok(Written {
                resource,
                created: false,
            });
        }
        if if_match != IfMatch::Absent {
            return Err(Problem::version_mismatch(id, 0));
        }
        let asked = asked.clone();
        let first = apply::create(identity(caller.organization, id), asked, &facts, types, clock::now());
        if let Some(resource) = session.put(first.map_err(invalid)?).await? {
            session.commit().await?;
            return Ok(Written {
                resource,
                created: true,
            });
        }
    }
    Err(Problem::unavailable("The resource is being created by someone else."))
}

/// Creates a resource under an id that nothing has yet; a repeat of the same request has the same answer.
///
/// # Errors
/// 409 `resource_exists`, 422 with every fault.
pub async fn create(
    catalog: &Catalog,
    caller: &Caller,
    id: &ResourceId,
    asked: Desired,
    request: &IdempotentRequest,
) -> Result<StoredResponse, Problem> {
    let organization = caller.organization;
    let transaction = catalog
        .database()
        .begin_hot(organization)
        .await
        .map_err(StoreError::from)?;
    if let Claim::Replay(answer) = idempotency_hot::claim(&transaction, organization, request).await? {
        return Ok(answer);
    }
    let session = Session::within(catalog, caller, transaction, id).await?;
    if session.current.is_some() {
        return Err(exists(id));
    }
    let facts = session
        .facts(id, &asked.resource_type, asked.edges.iter().flatten())
        .await?;
    let types = &session.registry.types;
    let first = apply::create(identity(organization, id), asked, &facts, types, clock::now()).map_err(invalid)?;
    let Some(resource) = session.put(first).await? else {
        return Err(exists(id));
    };
    let answer = StoredResponse::json(201, &wire::resource(&resource))?
        .version(resource.version)
        .location(format!("/v1/resources/{id}"));
    idempotency_hot::store(&session.transaction, organization, request, &answer).await?;
    let tell = Tell::accepted().on(format!("resources/{id}"));
    session.commit_telling(tell).await?;
    Ok(answer)
}

fn exists(id: &ResourceId) -> Problem {
    Problem::conflict("resource_exists", format!("There is a resource {id} already."))
        .remedy("PUT it to change it, or choose another id.")
}

/// Adds an edge (`present`) or removes it.
///
/// # Errors
/// 404 without such a resource, 412 when the version is another, 422 when the edge is refused.
pub async fn edge(
    catalog: &Catalog,
    caller: &Caller,
    id: &ResourceId,
    edge: Edge,
    present: bool,
    if_match: IfMatch,
) -> Result<Resource, Problem> {
    let session = Session::open(catalog, caller, id).await?;
    let current = session.existing(id)?;
    let mut edges: BTreeSet<Edge> = current.edges.clone();
    let facts = if present {
        session.facts(id, &current.resource_type, [&edge]).await?
    } else {
        BTreeMap::new()
    };
    if present {
        edges.insert(edge);
    } else {
        edges.remove(&edge);
    }
    let next = apply::set_edges(current, edges, &facts, &session.registry.types, clock::now());
    let next = guarded(if_match, current, next)?;
    session.finish(next).await
}

/// What an observer saw of a capability.
#[derive(Debug)]
pub struct Seen {
    pub attributes: Map<String, Value>,
    pub evidence: Vec<EvidenceRef>,
}

/// Adds a capability that was seen; with None, withdraws it.
///
/// # Errors
/// 404 without such a resource, 412 when the version is another, 422 with every fault.
pub async fn capability(
    catalog: &Catalog,
    caller: &Caller,
    id: &ResourceId,
    capability: &DottedName,
    seen: Option<Seen>,
    if_match: IfMatch,
) -> Result<Resource, Problem> {
    let session = Session::open(catalog, caller, id).await?;
    let current = session.existing(id)?;
    let next = match seen {
        None => Ok(observe::withdraw(current, capability, clock::now())),
        Some(seen) => observe::provide(
            current,
            capability,
            seen.attributes,
            seen.evidence,
            &caller.subject,
            &session.registry.capabilities,
            clock::now(),
        ),
    };
    let next = guarded(if_match, current, next)?;
    session.finish(next).await
}
