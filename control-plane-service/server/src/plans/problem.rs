//! Why there is no plan, for callers.

use api_kit::{FieldError, Problem, internal_problem};
use control_plane_plan::SlotExplanation;
use control_plane_planning::PlanningError;
use control_plane_scenario::ValueFault;

use crate::projection::read::ReadError;

/// What planning found wrong. `below` is where the parameters are in the request.
pub fn of_planning(error: PlanningError, below: &str) -> Problem {
    let cannot = |detail: String| Problem::new(422, "plan_impossible", "There is no such plan").detail(detail);
    match error {
        PlanningError::Parameters(faults) => Problem::invalid(values(faults, below)),
        PlanningError::Unsatisfiable(slots) => unsatisfiable(&slots),
        PlanningError::JobParameters { node, faults } => {
            let problem = cannot(format!(
                "The parameters of node {node} do not fit once they are filled in."
            ));
            problem.errors(faults.into_iter().map(|fault| {
                let place = format!("/nodes/{node}/parameters{}", fault.pointer);
                FieldError::new(place, "job_parameters", fault.detail)
            }))
        }
        PlanningError::TooLarge { .. } => {
            Problem::new(422, "plan_too_large", "The plan is too large").detail(format!("{error}."))
        }
        PlanningError::BoundResourceGone { .. } => Problem::conflict("resource_gone", format!("{error}."))
            .remedy("Make a new plan and start a new operation with it."),
        other => cannot(format!("{other}.")),
    }
}

fn values(faults: Vec<ValueFault>, below: &str) -> Vec<FieldError> {
    let one = |fault: ValueFault| FieldError::new(format!("{below}{}", fault.pointer), fault.code, fault.detail);
    faults.into_iter().map(one).collect()
}

/// 422 with every slot that cannot be bound, and all explanations.
pub fn unsatisfiable(slots: &[SlotExplanation]) -> Problem {
    let open: Vec<&SlotExplanation> = slots.iter().filter(|slot| !slot.satisfied).collect();
    let errors = open.iter().map(|slot| {
        let problem = slot.problem.clone().unwrap_or_default();
        FieldError::new(format!("/slots/{}", slot.slot), "unsatisfiable", problem)
    });
    let remedies: Vec<String> = open
        .iter()
        .filter_map(|slot| Some(format!("{}: {}", slot.slot, slot.remedy.as_ref()?)))
        .collect();
    let problem = Problem::new(422, "plan_unsatisfiable", "Not every slot can be bound")
        .errors(errors.collect::<Vec<_>>())
        .remedy(remedies.join("; "));
    match serde_json::to_value(slots) {
        Ok(slots) => problem.with("slots", slots),
        Err(_) => problem,
    }
}

/// The copy of the catalog could not be read.
pub fn of_read(error: ReadError) -> Problem {
    match error {
        ReadError::Store(error) => api_kit::database_problem(&error.into()),
        error @ ReadError::Corrupt(_) => internal_problem(&error),
    }
}
