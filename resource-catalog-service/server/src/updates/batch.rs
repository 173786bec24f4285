use std::collections::HashMap;
use std::sync::Arc;

use api_kit::{Act, Problem, Tell};
use audit::NewFact;
use chrono::{DateTime, Utc};
use contracts::ResourceUpdateCommand;
use database::{OrgTransaction, SqlState};
use futures::{TryFutureExt as _, try_join};
use kernel::id::{CommandId, OrganizationId, ResourceUid};
use resource_catalog_api::UpdateOutcome;
use resource_catalog_domain::change::differences;
use resource_catalog_domain::update::{self, Conflict, Refusal};
use resource_catalog_domain::{Difference, Resource, VersionChanges};

use super::queue::Waiting;
use crate::catalog::Catalog;
use crate::registry::Registry;
use crate::store::commands::{self, Decided};
use crate::store::write::{Cause, Write, write};
use crate::store::{StoreError, definitions, resource, versions};
use crate::{clock, wire};

/// What a command comes to.
#[derive(Debug, Clone)]
pub enum Answer {
    Outcome(Box<UpdateOutcome>),
    /// The same id came before with another body.
    Reused,
    /// There is no such resource. Not an outcome: nothing is kept of it.
    NoResource,
}

/// How often a batch is tried when others decide its commands at the same moment.
const TRIES: usize = 3;

/// Decides each command of `batch`, all of one organization.
pub(super) async fn decide(catalog: &Catalog, batch: &[Waiting]) -> Vec<Result<Answer, Problem>> {
    match attempt(catalog, batch).await {
        Ok(Some(answers)) => return answers.into_iter().map(Ok).collect(),
        // Who waits for a database that is away waits once, not once for each command.
        Err(error) if is_away(&error) => return vec![Err(Problem::from(error)); batch.len()],
        // One command must not spoil the others: each on its own.
        Ok(None) | Err(_) => {}
    }
    let mut answers = Vec::with_capacity(batch.len());
    for waiting in batch {
        answers.push(alone(catalog, waiting).await);
    }
    answers
}

fn is_away(error: &StoreError) -> bool {
    matches!(error, StoreError::Database(database) if database.is_transient()
        && database.sql_state() != Some(SqlState::Serialization))
}

async fn alone(catalog: &Catalog, waiting: &Waiting) -> Result<Answer, Problem> {
    for _ in 0..TRIES {
        if let Some(mut answers) = attempt(catalog, core::slice::from_ref(waiting)).await?
            && let Some(answer) = answers.pop()
        {
            return Ok(answer);
        }
    }
    Err(Problem::unavailable(
        "The same command is being decided by another process.",
    ))
}

/// One transaction over `batch`. None when a command was decided elsewhere meanwhile; then nothing was written.
async fn attempt(catalog: &Catalog, batch: &[Waiting]) -> Result<Option<Vec<Answer>>, StoreError> {
    let Some(first) = batch.first() else {
        return Ok(Some(Vec::new()));
    };
    let organization = first.organization;
    let transaction = catalog.database().begin_hot(organization).await?;
    let mut ids: Vec<&str> = batch.iter().map(|w| w.command.resource_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let command_ids: Vec<CommandId> = batch.iter().map(|w| w.command.command_id).collect();
    // One round trip. The rows are locked before the look for earlier outcomes: a repeat of a command that is just being
    // decided waits here and then finds its outcome.
    let (resources, decided, revision) = try_join!(
        resource::lock(&transaction, organization, &ids),
        commands::find(&transaction, organization, &command_ids),
        definitions::revision_hot(&transaction, organization),
    )?;
    let registry = catalog.registry_at(organization, revision).await?;
    let mut ledger = Ledger {
        transaction: &transaction,
        organization,
        registry,
        now: clock::now(),
        current: resources.into_iter().map(|r| (r.id.to_string(), r)).collect(),
        decided,
        made: HashMap::new(),
        writes: Vec::new(),
        new: Vec::new(),
        told: Vec::new(),
    };
    let mut answers = Vec::with_capacity(batch.len());
    for waiting in batch {
        answers.push(ledger.enter(waiting).await?);
    }
    let Ledger {
        writes, new, told, now, ..
    } = ledger;
    if new.is_empty() {
        transaction.rollback().await?;
        return Ok(Some(answers));
    }
    let facts: Vec<NewFact> = told.iter().filter_map(|(act, tell)| act.fact(tell.clone())).collect();
    let recorded = audit::append(&transaction, &facts).map_err(StoreError::from);
    let (_, kept, ()) = try_join!(
        write(&transaction, organization, &writes),
        commands::keep(&transaction, organization, &new, now),
        recorded,
    )?;
    if !kept {
        transaction.rollback().await?;
        return Ok(None);
    }
    failpoints::hit("catalog.resource_update.before_commit");
    transaction.commit().await?;
    failpoints::hit("catalog.resource_update.after_commit");
    told.iter().for_each(|(act, _)| act.written());
    if !writes.is_empty() {
        catalog.changed();
    }
    Ok(Some(answers))
}

/// A transaction's view while its commands are decided one after the other.
struct Ledger<'a> {
    transaction: &'a OrgTransaction,
    organization: OrganizationId,
    registry: Arc<Registry>,
    now: DateTime<Utc>,
    current: HashMap<String, Resource>,
    decided: HashMap<CommandId, Decided>,
    /// Versions made in this transaction, which the database does not show yet.
    made: HashMap<ResourceUid, Vec<VersionChanges>>,
    writes: Vec<Write>,
    new: Vec<(CommandId, Decided)>,
    /// What the audit is to tell of each new outcome.
    told: Vec<(Act, Tell)>,
}

fn tell(command: &ResourceUpdateCommand, outcome: &UpdateOutcome) -> Tell {
    let tell = match wire::update::problem(outcome) {
        None => Tell::accepted(),
        Some(problem) => Tell::refused(problem.code),
    };
    tell.on(format!("resources/{}", command.resource_id))
        .with("command_id", command.command_id.to_string())
        .with("operation_id", command.operation_id.to_string())
}

impl Ledger<'_> {
    async fn enter(&mut self, waiting: &Waiting) -> Result<Answer, StoreError> {
        let command = &waiting.command;
        if let Some(first) = self.decided.get(&command.command_id) {
            return Ok(if first.body_digest == waiting.digest {
                Answer::Outcome(Box::new(wire::update::replayed(first.outcome.clone())))
            } else {
                Answer::Reused
            });
        }
        let Some(resource) = self.current.get(command.resource_id.as_str()) else {
            return Ok(Answer::NoResource);
        };
        let registry = &self.registry;
        let decision = update::apply(resource, &registry.types, &registry.capabilities, command, self.now);
        let outcome = match decision {
            Ok(change) => {
                let outcome = wire::update::applied(command, &change.next);
                self.made.entry(change.next.uid).or_default().push(VersionChanges {
                    version: change.next.version,
                    changed: change.changed.clone(),
                });
                let next = change.next.clone();
                self.writes.push(Write {
                    before: self.current.insert(next.id.to_string(), next),
                    change,
                    cause: Cause {
                        actor: waiting.actor.clone(),
                        command: Some(command.command_id),
                        traceparent: command.traceparent.clone(),
                    },
                });
                outcome
            }
            Err(Refusal::Conflict(conflict)) => {
                let differs = self.differs(waiting, &conflict).await?;
                wire::update::conflict(command, &conflict, differs)
            }
            Err(Refusal::Rejected(faults)) => wire::update::rejected(command, faults),
        };
        let decided = Decided {
            body_digest: waiting.digest,
            outcome: outcome.clone(),
        };
        self.decided.insert(command.command_id, decided.clone());
        self.new.push((command.command_id, decided));
        self.told.push((waiting.act.clone(), tell(command, &outcome)));
        Ok(Answer::Outcome(Box::new(outcome)))
    }

    async fn differs(&self, waiting: &Waiting, conflict: &Conflict) -> Result<Vec<Difference>, StoreError> {
        if conflict.other_incarnation {
            return Ok(Vec::new());
        }
        let expected = conflict.expected_version;
        let mut history = versions::since(self.transaction, self.organization, conflict.current_uid, expected).await?;
        history.extend(self.made.get(&conflict.current_uid).into_iter().flatten().cloned());
        let touched = update::touched(&waiting.command);
        Ok(differences(expected, conflict.current_version, &history, &touched))
    }
}
