//! Which runner may have which attempt, and in which order attempts are looked at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use contracts::{Isolation, JobSpec, JobType};

/// What a runner offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The runner's own name and the pools that it belongs to.
    pub names: BTreeSet<String>,
    pub labels: BTreeMap<String, String>,
    pub job_types: BTreeSet<JobType>,
    pub isolation: BTreeSet<Isolation>,
    /// Empty serves all.
    pub environments: BTreeSet<String>,
    pub draining: bool,
}

/// What an attempt asks of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub job_type: JobType,
    /// At least this grade.
    pub isolation: Isolation,
    pub environment: String,
}

/// The first reason why a runner may not have an attempt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("it is not called {0} and is in no pool of that name")]
    Name(String),
    #[error("it does not run {} jobs", .0.as_str())]
    JobType(JobType),
    #[error("it does not serve the environment {0}")]
    Environment(String),
    #[error("it offers no isolation as strong as {0:?}")]
    Isolation(Isolation),
    #[error("it lacks the label {0}={1}")]
    Label(String, String),
    #[error("it is draining")]
    Draining,
}

impl Demand {
    /// What `spec` asks for.
    #[must_use]
    pub fn of(spec: &JobSpec) -> Self {
        Self {
            name: spec.runner.name.clone(),
            labels: spec.runner.labels.clone(),
            job_type: spec.job_type,
            isolation: spec.runner.isolation,
            environment: spec.target.environment.clone(),
        }
    }
}

impl Offer {
    /// Whether this runner may have it; else why not.
    ///
    /// # Errors
    /// The first [`Mismatch`], the most lasting first.
    pub fn admits(&self, demand: &Demand) -> Result<(), Mismatch> {
        if !self.names.contains(&demand.name) {
            return Err(Mismatch::Name(demand.name.clone()));
        }
        if !self.job_types.contains(&demand.job_type) {
            return Err(Mismatch::JobType(demand.job_type));
        }
        if !self.environments.is_empty() && !self.environments.contains(&demand.environment) {
            return Err(Mismatch::Environment(demand.environment.clone()));
        }
        if self.strongest().is_none_or(|strongest| strongest < demand.isolation) {
            return Err(Mismatch::Isolation(demand.isolation));
        }
        let lacking = demand
            .labels
            .iter()
            .find(|(key, value)| self.labels.get(*key) != Some(value));
        if let Some((key, value)) = lacking {
            return Err(Mismatch::Label(key.clone(), value.clone()));
        }
        if self.draining {
            return Err(Mismatch::Draining);
        }
        Ok(())
    }

    /// The strongest grade that it gives.
    #[must_use]
    pub fn strongest(&self) -> Option<Isolation> {
        self.isolation.last().copied()
    }
}

/// Puts items of several parties (organizations) into a fair order: one of each in turn, each
/// party's own in the order given. So a party with a thousand waiting items delays another's first
/// one by one item.
pub fn fair_order<P: Ord + Clone, T>(items: impl IntoIterator<Item = (P, T)>) -> Vec<(P, T)> {
    let mut parties: BTreeMap<P, VecDeque<T>> = BTreeMap::new();
    for (party, item) in items {
        parties.entry(party).or_default().push_back(item);
    }
    let mut order = Vec::new();
    while !parties.is_empty() {
        parties.retain(|party, waiting| {
            order.extend(waiting.pop_front().map(|item| (party.clone(), item)));
            !waiting.is_empty()
        });
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offer() -> Offer {
        Offer {
            names: ["r1".into(), "default".into()].into(),
            labels: [("zone".into(), "a".into()), ("gpu".into(), "no".into())].into(),
            job_types: [JobType::Ssh, JobType::Verification].into(),
            isolation: [Isolation::Process, Isolation::Sandbox].into(),
            environments: ["demo".into()].into(),
            draining: false,
        }
    }

    fn demand() -> Demand {
        Demand {
            name: "default".into(),
            labels: [("zone".into(), "a".into())].into(),
            job_type: JobType::Ssh,
            isolation: Isolation::Sandbox,
            environment: "demo".into(),
        }
    }

    #[test]
    fn a_runner_gets_only_what_it_can_do_in_full() {
        assert_eq!(offer().admits(&demand()), Ok(()));
        let mut weaker = demand();
        weaker.isolation = Isolation::Process;
        assert_eq!(offer().admits(&weaker), Ok(()), "stronger than asked is allowed");
        let refused = [
            (
                Demand {
                    name: "other".into(),
                    ..demand()
                },
                Mismatch::Name("other".into()),
            ),
            (
                Demand {
                    job_type: JobType::Ansible,
                    ..demand()
                },
                Mismatch::JobType(JobType::Ansible),
            ),
            (
                Demand {
                    environment: "prod".into(),
                    ..demand()
                },
                Mismatch::Environment("prod".into()),
            ),
            (
                Demand {
                    isolation: Isolation::Container,
                    ..demand()
                },
                Mismatch::Isolation(Isolation::Container),
            ),
            (
                Demand {
                    labels: [("zone".into(), "b".into())].into(),
                    ..demand()
                },
                Mismatch::Label("zone".into(), "b".into()),
            ),
        ];
        for (demand, mismatch) in refused {
            assert_eq!(offer().admits(&demand), Err(mismatch));
        }
    }

    #[test]
    fn a_draining_runner_gets_nothing_and_no_environments_means_all() {
        let draining = Offer {
            draining: true,
            ..offer()
        };
        assert_eq!(draining.admits(&demand()), Err(Mismatch::Draining));
        let everywhere = Offer {
            environments: BTreeSet::new(),
            ..offer()
        };
        let elsewhere = Demand {
            environment: "prod".into(),
            ..demand()
        };
        assert_eq!(everywhere.admits(&elsewhere), Ok(()));
        let powerless = Offer {
            isolation: BTreeSet::new(),
            ..offer()
        };
        assert_eq!(
            powerless.admits(&demand()),
            Err(Mismatch::Isolation(Isolation::Sandbox))
        );
    }

    proptest! {
        #[test]
        fn no_party_waits_for_more_than_one_item_of_each_other(parties in proptest::collection::vec(0..5_u8, 0..60)) {
            let items: Vec<_> = parties.iter().copied().enumerate().map(|(n, party)| (party, n)).collect();
            let order = fair_order(items.clone());
            prop_assert_eq!(order.len(), items.len());
            for party in 0..5_u8 {
                let own: Vec<_> = order.iter().filter(|(p, _)| *p == party).map(|(_, n)| *n).collect();
                prop_assert!(own.is_sorted(), "each party's own order is kept");
                for (rank, n) in own.iter().enumerate() {
                    let place = order.iter().position(|item| item == &(party, *n)).unwrap();
                    prop_assert!(place < (rank + 1) * 5, "place {} for the {}th item", place, rank + 1);
                }
            }
        }
    }
}
