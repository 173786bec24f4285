//! What a store can select by before matching begins, so that a large inventory is not loaded whole.
//!
//! A selection is necessary, never sufficient: whatever it leaves out is certainly refused by the
//! constraint it names; whatever it lets through is judged by matching.

use contracts::{HealthStatus, LifecycleStatus};
use control_plane_scenario::Template;
use kernel::DottedName;
use serde_json::{Map, Value};

use crate::PlanningError;
use crate::constraint::{
    CONNECTION, Wanted, capability_constraint, environment_constraint, health_constraint, lifecycle_constraint,
};
use crate::planner::base_scope;

/// Which resources can be candidates of one slot.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotSelection {
    pub slot: String,
    /// Derived types count.
    pub resource_type: DottedName,
    pub environment: String,
    pub lifecycle: Vec<LifecycleStatus>,
    /// Empty: any.
    pub health: Vec<HealthStatus>,
    pub connection: bool,
    /// Each must be provided, itself or by a child.
    pub capabilities: Vec<DottedName>,
    /// Edge types along which places are looked for.
    pub place_edges: Vec<String>,
    /// With so many that fit, the best are known although not all candidates are: nothing is preferred and
    /// nothing depends on the rest. `None`: all have to be seen.
    pub enough: Option<u32>,
    constraints: Vec<(DottedName, String)>,
}

/// The constraint that left a resource out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOutBy {
    Environment,
    Lifecycle,
    Health,
    Connection,
    Capability(DottedName),
}

impl SlotSelection {
    /// How matching calls the constraint.
    #[must_use]
    pub fn constraint(&self, by: &LeftOutBy) -> String {
        match by {
            LeftOutBy::Environment => environment_constraint(&self.environment),
            LeftOutBy::Lifecycle => lifecycle_constraint(&self.lifecycle),
            LeftOutBy::Health => health_constraint(&self.health),
            LeftOutBy::Connection => CONNECTION.to_owned(),
            LeftOutBy::Capability(name) => {
                let told = self.constraints.iter().find(|(capability, _)| capability == name);
                told.map_or_else(|| format!("capability {name}"), |(_, told)| told.clone())
            }
        }
    }
}

/// The selections of all slots, by slot name.
///
/// # Errors
/// When the parameters are not valid or a slot's own values cannot be filled in.
pub fn selections(
    template: &Template,
    environment: &str,
    given: &Map<String, Value>,
) -> Result<Vec<SlotSelection>, PlanningError> {
    let parameters = template.complete(given).map_err(PlanningError::Parameters)?;
    let scope = base_scope(&parameters, environment);
    let is_parent = |slot: &str| {
        let related =
            |r: &control_plane_scenario::template::Requirement| r.relation.as_ref().is_some_and(|x| x.slot == slot);
        template.requirements.values().any(related)
    };
    template
        .requirements
        .iter()
        .map(|(slot, requirement)| {
            let wanted = Wanted::of(requirement, environment, &scope)?;
            let whole = requirement.same.is_some()
                || requirement.relation.is_some()
                || !requirement.prefer.is_empty()
                || is_parent(slot);
            let topology = requirement.distinct.as_ref().or(requirement.same.as_ref());
            Ok(SlotSelection {
                slot: slot.clone(),
                resource_type: requirement.resource_type.clone(),
                environment: wanted.environment,
                lifecycle: requirement.lifecycle.clone(),
                health: requirement.health.clone(),
                connection: requirement.connection,
                capabilities: requirement.capabilities.iter().map(|c| c.capability.clone()).collect(),
                place_edges: topology.map(|t| t.edges.clone()).unwrap_or_default(),
                enough: requirement.count.max.filter(|_| !whole),
                constraints: requirement
                    .capabilities
                    .iter()
                    .map(|c| (c.capability.clone(), capability_constraint(c)))
                    .collect(),
            })
        })
        .collect()
}
