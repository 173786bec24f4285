use api_kit::Problem;
use contracts::ResourceUpdateCommand;
use resource_catalog_api as api;
use resource_catalog_domain as domain;

use super::fault::field_error;

fn outcome(command: &ResourceUpdateCommand, outcome: api::Outcome) -> api::UpdateOutcome {
    api::UpdateOutcome {
        command_id: command.command_id,
        resource_id: command.resource_id.clone(),
        outcome,
        first_outcome: None,
        uid: None,
        version: None,
        conflict: None,
        errors: Vec::new(),
    }
}

/// The command made a version.
pub fn applied(command: &ResourceUpdateCommand, resource: &domain::Resource) -> api::UpdateOutcome {
    api::UpdateOutcome {
        uid: Some(resource.uid),
        version: Some(resource.version),
        ..outcome(command, api::Outcome::Applied)
    }
}

/// The command's expectation did not hold; `differs` is what changed since.
pub fn conflict(
    command: &ResourceUpdateCommand,
    found: &domain::Conflict,
    differs: Vec<domain::Difference>,
) -> api::UpdateOutcome {
    let differs: Vec<api::Difference> = differs
        .into_iter()
        .map(|d| api::Difference {
            pointer: d.pointer,
            version: d.version,
            overlaps: d.overlaps,
        })
        .collect();
    api::UpdateOutcome {
        uid: Some(found.current_uid),
        conflict: Some(api::UpdateConflict {
            expected_version: found.expected_version,
            current_version: found.current_version,
            current_uid: found.current_uid,
            other_incarnation: found.other_incarnation,
            overlaps: found.other_incarnation || differs.iter().any(|d| d.overlaps),
            differs,
        }),
        ..outcome(command, api::Outcome::Conflict)
    }
}

/// The command cannot be applied, whatever the version.
pub fn rejected(command: &ResourceUpdateCommand, faults: Vec<domain::Fault>) -> api::UpdateOutcome {
    api::UpdateOutcome {
        errors: faults.into_iter().map(field_error).collect(),
        ..outcome(command, api::Outcome::Rejected)
    }
}

/// The first outcome, given again.
pub fn replayed(first: api::UpdateOutcome) -> api::UpdateOutcome {
    api::UpdateOutcome {
        first_outcome: Some(first.outcome),
        outcome: api::Outcome::Replayed,
        ..first
    }
}

/// An outcome that is no success, as a problem that carries it as `update`; a replay answers as the first time.
pub fn problem(outcome: &api::UpdateOutcome) -> Option<Problem> {
    let problem = match outcome.settled() {
        api::Outcome::Applied | api::Outcome::Replayed => return None,
        api::Outcome::Conflict => conflict_problem(outcome),
        api::Outcome::Rejected => Problem::new(422, "update_rejected", "The update cannot be applied")
            .detail("The resource was not changed.")
            .errors(outcome.errors.iter().cloned())
            .remedy("Mend what is named and send it under a new command_id."),
    };
    // Plain structures: always JSON.
    Some(problem.with("update", serde_json::to_value(outcome).unwrap_or_default()))
}

fn conflict_problem(outcome: &api::UpdateOutcome) -> Problem {
    let detail = match &outcome.conflict {
        Some(found) if found.other_incarnation => {
            format!(
                "{} is another incarnation now: uid {}.",
                outcome.resource_id, found.current_uid
            )
        }
        Some(found) => format!(
            "{} is at version {}, not {}.",
            outcome.resource_id, found.current_version, found.expected_version
        ),
        None => format!("{} has moved.", outcome.resource_id),
    };
    let current = outcome.conflict.as_ref().map(|found| found.current_version);
    Problem::conflict("update_conflict", detail)
        .remedy("When `update.conflict.overlaps` is false, send the same changes under a new command_id with the current version.")
        .with("current_version", current)
}
