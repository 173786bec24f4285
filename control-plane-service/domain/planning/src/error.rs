//! Why there is no plan.

use control_plane_plan::SlotExplanation;
use control_plane_scenario::ValueFault;
use control_plane_scenario::job_types::ParameterFault;
use kernel::ResourceId;

/// Why there is no plan. All of it is the caller's to mend: pack, parameters or resources.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanningError {
    #[error("the parameters have {} faults", .0.len())]
    Parameters(Vec<ValueFault>),
    /// All slots are explained, those that could be bound too.
    #[error("not every slot can be bound: {}", unbound(.0))]
    Unsatisfiable(Vec<SlotExplanation>),
    #[error("slot `{slot}`: {problem}")]
    Slot { slot: String, problem: String },
    #[error("node `{node}`: {problem}")]
    Node { node: String, problem: String },
    #[error("the parameters of node `{node}` have {} faults once they are filled in", .faults.len())]
    JobParameters { node: String, faults: Vec<ParameterFault> },
    #[error("the plan would have more than {limit} {what}")]
    TooLarge { limit: usize, what: &'static str },
    #[error("{resource_id}, which the plan is bound to, is gone")]
    BoundResourceGone { resource_id: ResourceId },
    #[error("{0}")]
    Canonical(#[from] kernel::CanonicalError),
}

fn unbound(slots: &[SlotExplanation]) -> String {
    let open: Vec<&str> = slots.iter().filter(|s| !s.satisfied).map(|s| s.slot.as_str()).collect();
    open.join(", ")
}

impl PlanningError {
    pub(crate) fn in_slot(slot: &str, problem: impl Into<String>) -> Self {
        Self::Slot {
            slot: slot.to_owned(),
            problem: problem.into(),
        }
    }

    pub(crate) fn in_node(node: &str, problem: impl Into<String>) -> Self {
        Self::Node {
            node: node.to_owned(),
            problem: problem.into(),
        }
    }
}
