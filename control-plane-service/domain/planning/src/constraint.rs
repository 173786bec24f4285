//! One candidate against the constraints of one slot: everything it does not meet, with what it has
//! instead and what would have to change.

use control_plane_scenario::expression::{Expression, Scope};
use control_plane_scenario::template::{CapabilityConstraint, Preference, Requirement};
use kernel::selector::Term;
use kernel::{DottedName, Selector, SoftwareVersion};
use serde_json::Value;

use crate::remedy::Change;
use crate::{Candidate, PlanningError};

/// A constraint that a candidate does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unmet {
    pub(crate) constraint: String,
    pub(crate) found: String,
    pub(crate) change: Change,
}

/// A requirement with its parameters filled in.
pub(crate) struct Wanted<'t> {
    pub(crate) requirement: &'t Requirement,
    pub(crate) environment: String,
    pub(crate) selector: Selector,
    pub(crate) reads: Vec<DottedName>,
}

/// How the constraint on the environment is called.
pub(crate) fn environment_constraint(environment: &str) -> String {
    format!("environment {environment}")
}

/// How the constraint on connection data is called.
pub(crate) const CONNECTION: &str = "connection data";

pub(crate) fn lifecycle_constraint(allowed: &[contracts::LifecycleStatus]) -> String {
    let words: Vec<&str> = allowed.iter().map(|status| status.as_str()).collect();
    format!("lifecycle {}", words.join(" or "))
}

pub(crate) fn health_constraint(allowed: &[contracts::HealthStatus]) -> String {
    let words: Vec<&str> = allowed.iter().map(|status| status.as_str()).collect();
    format!("health {}", words.join(" or "))
}

impl<'t> Wanted<'t> {
    pub(crate) fn of(
        requirement: &'t Requirement,
        environment: &str,
        scope: &Scope<'_>,
    ) -> Result<Self, PlanningError> {
        let text = |dynamic: &control_plane_scenario::dynamic::Dynamic, what| {
            let value = dynamic
                .resolve(scope, &mut Default::default())
                .map_err(|cause| PlanningError::in_slot(&requirement.slot, cause.to_string()))?;
            match value {
                Value::String(text) => Ok(text),
                other => Err(PlanningError::in_slot(
                    &requirement.slot,
                    format!("its {what} is {other}, text was expected"),
                )),
            }
        };
        let environment = match &requirement.environment {
            Some(dynamic) => text(dynamic, "environment")?,
            None => environment.to_owned(),
        };
        let selector = match &requirement.selector {
            Some(dynamic) => Selector::parse(&text(dynamic, "selector")?)
                .map_err(|error| PlanningError::in_slot(&requirement.slot, error.to_string()))?,
            None => Selector::default(),
        };
        Ok(Self {
            requirement,
            environment,
            selector,
            reads: requirement.capabilities_read(),
        })
    }

    /// The requirement in one line, for people.
    pub(crate) fn told(&self) -> String {
        let requirement = self.requirement;
        let count = match (requirement.count.min, requirement.count.max) {
            (_, None) => "all".to_owned(),
            (min, Some(max)) if min == max => min.to_string(),
            (min, Some(max)) => format!("{min}–{max}"),
        };
        let mut parts = vec![format!(
            "{count} {} in environment {}",
            requirement.resource_type, self.environment
        )];
        parts.extend(requirement.capabilities.iter().map(capability_constraint));
        parts.extend(self.selector.terms.iter().map(|term| format!("label {term}")));
        parts.extend(requirement.condition.iter().map(|c| format!("where {}", c.source())));
        for (word, topology) in [("distinct", &requirement.distinct), ("same", &requirement.same)] {
            parts.extend(topology.iter().map(|t| format!("{word} {}", t.place_type)));
        }
        parts.extend(
            requirement
                .relation
                .iter()
                .map(|r| format!("{} the one of slot {}", r.edge, r.slot)),
        );
        parts.join(", ")
    }

    /// Every constraint that `candidate` does not meet, in the order in which they are stated. Topology and
    /// relations are judged elsewhere: they are about more than one resource.
    pub(crate) fn unmet(&self, candidate: &Candidate, scope: &Scope<'_>) -> Vec<Unmet> {
        let mut unmet = Vec::new();
        self.circumstances(candidate, &mut unmet);
        self.labels(candidate, &mut unmet);
        for constraint in &self.requirement.capabilities {
            capability(constraint, candidate, scope, &mut unmet);
        }
        self.conditions(candidate, scope, &mut unmet);
        unmet
    }

    fn circumstances(&self, candidate: &Candidate, unmet: &mut Vec<Unmet>) {
        let requirement = self.requirement;
        if candidate.environment.as_deref() != Some(&self.environment) {
            unmet.push(Unmet {
                constraint: environment_constraint(&self.environment),
                found: match &candidate.environment {
                    Some(other) => format!("is in environment {other}"),
                    None => "is in no environment".to_owned(),
                },
                change: Change::Environment(self.environment.clone()),
            });
        }
        if let Some(first) = requirement.lifecycle.first()
            && !requirement.lifecycle.contains(&candidate.lifecycle)
        {
            unmet.push(Unmet {
                constraint: lifecycle_constraint(&requirement.lifecycle),
                found: format!("is {}", candidate.lifecycle.as_str()),
                change: Change::Lifecycle(*first),
            });
        }
        if let Some(first) = requirement.health.first()
            && !requirement.health.contains(&candidate.health)
        {
            unmet.push(Unmet {
                constraint: health_constraint(&requirement.health),
                found: format!("is {}", candidate.health.as_str()),
                change: Change::Health(*first),
            });
        }
        if requirement.connection && candidate.connection.is_empty() {
            unmet.push(Unmet {
                constraint: CONNECTION.to_owned(),
                found: "has none".to_owned(),
                change: Change::Connection,
            });
        }
    }

    fn labels(&self, candidate: &Candidate, unmet: &mut Vec<Unmet>) {
        for term in self
            .selector
            .terms
            .iter()
            .filter(|term| !term.matches(&candidate.labels))
        {
            let (key, change) = match term {
                Term::In { key, values } => (
                    key,
                    Change::SetLabel {
                        key: key.clone(),
                        value: values.first().cloned().unwrap_or_default(),
                    },
                ),
                Term::Exists { key } => (
                    key,
                    Change::SetLabel {
                        key: key.clone(),
                        value: String::new(),
                    },
                ),
                Term::NotIn { key, .. } | Term::Absent { key } => (key, Change::DropLabel(key.clone())),
            };
            unmet.push(Unmet {
                constraint: format!("label {term}"),
                found: label_found(candidate, key),
                change,
            });
        }
    }

    fn conditions(&self, candidate: &Candidate, scope: &Scope<'_>, unmet: &mut Vec<Unmet>) {
        let must_not = &self.requirement.must_not;
        for name in &must_not.capabilities {
            if let Some(held) = candidate.provider_of(name) {
                unmet.push(Unmet {
                    constraint: format!("must not: capability {name}"),
                    found: format!("provides {}", held.capability),
                    change: Change::Withdraw(held.capability.clone()),
                });
            }
        }
        if let Some(selector) = &must_not.selector
            && let Some(first) = selector.terms.first()
            && selector.matches(&candidate.labels)
        {
            let (Term::In { key, .. } | Term::NotIn { key, .. } | Term::Exists { key } | Term::Absent { key }) = first;
            let change = match first {
                Term::Absent { key } => Change::SetLabel {
                    key: key.clone(),
                    value: String::new(),
                },
                Term::NotIn { key, values } => Change::SetLabel {
                    key: key.clone(),
                    value: values.first().cloned().unwrap_or_default(),
                },
                Term::In { .. } | Term::Exists { .. } => Change::DropLabel(key.clone()),
            };
            unmet.push(Unmet {
                constraint: format!("must not: label {selector}"),
                found: label_found(candidate, key),
                change,
            });
        }
        if self.requirement.condition.is_none() && must_not.condition.is_none() {
            return;
        }
        let scope = scope.with("resource", &self.seen(candidate));
        if let Some(condition) = &self.requirement.condition {
            let held = condition.holds(&scope);
            judge(condition, format!("where {}", condition.source()), held, true, unmet);
        }
        if let Some(condition) = &must_not.condition {
            let held = condition.holds(&scope);
            judge(
                condition,
                format!("must not: {}", condition.source()),
                held,
                false,
                unmet,
            );
        }
    }

    fn seen(&self, candidate: &Candidate) -> Value {
        let mut seen = candidate.to_json(&self.reads);
        seen["health"] = Value::from(candidate.health.as_str());
        seen
    }

    /// The sum of the weights of what is preferred.
    pub(crate) fn score(&self, candidate: &Candidate, scope: &Scope<'_>) -> u64 {
        if self.requirement.prefer.is_empty() {
            return 0;
        }
        let scope = scope.with("resource", &self.seen(candidate));
        let prefers = |preference: &&Preference| {
            preference
                .selector
                .as_ref()
                .is_none_or(|s| s.matches(&candidate.labels))
                && preference
                    .condition
                    .as_ref()
                    .is_none_or(|c| c.holds(&scope).unwrap_or(false))
        };
        self.requirement
            .prefer
            .iter()
            .filter(prefers)
            .map(|p| u64::from(p.weight))
            .sum()
    }
}

fn label_found(candidate: &Candidate, key: &str) -> String {
    match candidate.labels.get(key) {
        Some(value) => format!("has label {key}={value}"),
        None => format!("has no label {key}"),
    }
}

pub(crate) fn capability_constraint(constraint: &CapabilityConstraint) -> String {
    match &constraint.version {
        Some(version) => format!("capability {} {version}", constraint.capability),
        None => format!("capability {}", constraint.capability),
    }
}

fn capability(constraint: &CapabilityConstraint, candidate: &Candidate, scope: &Scope<'_>, unmet: &mut Vec<Unmet>) {
    let name = &constraint.capability;
    let provide = || Change::Provide {
        capability: name.clone(),
        version: constraint.version.as_ref().map(ToString::to_string),
    };
    let Some(held) = candidate.provider_of(name) else {
        unmet.push(Unmet {
            constraint: capability_constraint(constraint),
            found: "does not provide it".to_owned(),
            change: provide(),
        });
        return;
    };
    if let Some(range) = &constraint.version {
        let found = match held.attributes.get("version") {
            None => Some(format!("provides {} without saying its version", held.capability)),
            Some(Value::String(text)) => match text.parse::<SoftwareVersion>() {
                Ok(version) if range.accepts(&version) => None,
                Ok(version) => Some(format!("has {} {version}", held.capability)),
                Err(error) => Some(error.to_string()),
            },
            Some(other) => Some(format!(
                "has {} with version {other}, which is no text",
                held.capability
            )),
        };
        if let Some(found) = found {
            unmet.push(Unmet {
                constraint: capability_constraint(constraint),
                found,
                change: provide(),
            });
        }
    }
    if let Some(condition) = &constraint.condition {
        let scope = scope.with("attributes", &Value::Object(held.attributes.clone()));
        let constraint = format!("capability {name} where {}", condition.source());
        judge(condition, constraint, condition.holds(&scope), true, unmet);
    }
}

fn judge(
    condition: &Expression,
    constraint: String,
    held: Result<bool, control_plane_scenario::expression::EvaluationError>,
    wanted: bool,
    unmet: &mut Vec<Unmet>,
) {
    let found = match held {
        Ok(held) if held == wanted => return,
        Ok(held) => format!("it is {held}"),
        Err(error) => error.to_string(),
    };
    let expression = if wanted {
        condition.source().to_owned()
    } else {
        format!("!({})", condition.source())
    };
    unmet.push(Unmet {
        constraint,
        found,
        change: Change::Condition(expression),
    });
}
