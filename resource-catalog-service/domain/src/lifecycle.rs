//! Which lifecycle status may follow which.

use std::collections::{BTreeMap, BTreeSet};

use contracts::LifecycleStatus as L;

use crate::fault::{Fault, FaultCode};

/// Allowed transitions. Staying where one is is always allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transitions(BTreeMap<L, BTreeSet<L>>);

impl Transitions {
    /// Transitions from pairs of a status and what may follow it.
    #[must_use]
    pub fn new(pairs: impl IntoIterator<Item = (L, Vec<L>)>) -> Self {
        let mut all: BTreeMap<L, BTreeSet<L>> = BTreeMap::new();
        for (from, to) in pairs {
            all.entry(from).or_default().extend(to);
        }
        Self(all)
    }

    /// What a type without a say of its own allows: a life from planned to decommissioned, in which anything may
    /// fail and what failed may be tried again. `decommissioned` is the end.
    #[must_use]
    pub fn standard() -> Self {
        let serving = [L::Running, L::Degraded, L::Maintenance];
        let mut pairs = vec![
            (
                L::Planned,
                vec![L::Provisioning, L::Running, L::Failed, L::Decommissioned],
            ),
            (
                L::Provisioning,
                vec![L::Running, L::Degraded, L::Failed, L::Decommissioning],
            ),
            (L::Decommissioning, vec![L::Decommissioned, L::Failed]),
            (
                L::Failed,
                vec![
                    L::Provisioning,
                    L::Running,
                    L::Maintenance,
                    L::Decommissioning,
                    L::Decommissioned,
                ],
            ),
        ];
        for from in serving {
            let mut to: Vec<L> = serving.into_iter().filter(|s| *s != from).collect();
            to.extend([L::Failed, L::Decommissioning]);
            pairs.push((from, to));
        }
        Self::new(pairs)
    }

    /// Whether a resource may go from `from` to `to`.
    #[must_use]
    pub fn allows(&self, from: L, to: L) -> bool {
        from == to || self.0.get(&from).is_some_and(|next| next.contains(&to))
    }

    /// Every allowed transition, in order.
    pub fn iter(&self) -> impl Iterator<Item = (L, Vec<L>)> + '_ {
        self.0.iter().map(|(from, to)| (*from, to.iter().copied().collect()))
    }

    /// The transitions that `wider` does not have.
    #[must_use]
    pub fn beyond(&self, wider: &Self) -> Vec<(L, L)> {
        self.0
            .iter()
            .flat_map(|(from, to)| to.iter().map(|to| (*from, *to)))
            .filter(|(from, to)| !wider.allows(*from, *to))
            .collect()
    }

    /// The fault of going from `from` to `to`, at `pointer`.
    #[must_use]
    pub fn fault(&self, from: L, to: L, pointer: &str) -> Option<Fault> {
        if self.allows(from, to) {
            return None;
        }
        let next: Vec<&str> = self
            .0
            .get(&from)
            .map(|to| to.iter().map(|s| s.as_str()).collect())
            .unwrap_or_default();
        let detail = if next.is_empty() {
            format!("nothing follows {}", from.as_str())
        } else {
            format!(
                "{} may be followed by {}, not by {}",
                from.as_str(),
                next.join(", "),
                to.as_str()
            )
        };
        Some(Fault::new(pointer, FaultCode::TransitionNotAllowed, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_life_ends_decommissioned_and_anything_before_may_fail() {
        let transitions = Transitions::standard();
        for from in L::ALL {
            assert!(transitions.allows(from, from));
            if from != L::Decommissioned && from != L::Failed {
                assert!(transitions.allows(from, L::Failed), "{from:?}");
            }
            if from != L::Decommissioned {
                assert!(!transitions.allows(L::Decommissioned, from));
            }
        }
    }

    #[test]
    fn a_refused_transition_says_what_may_follow() {
        let fault = Transitions::standard()
            .fault(L::Planned, L::Degraded, "/lifecycle_status")
            .unwrap();
        assert_eq!(fault.code, FaultCode::TransitionNotAllowed);
        assert_eq!(
            fault.detail,
            "planned may be followed by provisioning, running, decommissioned, failed, not by degraded"
        );
    }
}
