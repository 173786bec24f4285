//! Which attempts run: asked for beside results, told to the operations, so that a node reads running while
//! its job runs and not only once it has ended.
//!
//! Nothing is kept of it but in memory: a process that begins anew asks for all that runs, and an operation
//! that knows of a start takes no notice of it. Asked at most once a second, so that a chain of short jobs
//! pays nothing for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use control_plane_operation::Input;
use execution_plane_api::{Running, RunningAttempt, RunningQuery};
use futures::future::join_all;
use kernel::id::{AttemptId, OperationId, OrganizationId};
use tokio::time::Instant;

use crate::engine::{Engine, Telling};

const EVERY: Duration = Duration::from_secs(1);
/// A start that is committed this much later than it was stamped is still seen.
const OVERLAP: TimeDelta = TimeDelta::seconds(30);
/// So many can be named in a query.
const KNOWN: usize = 1000;

/// What is known of one organization, and when it was asked for last.
#[derive(Debug, Default)]
pub struct Watch {
    asked: Option<Instant>,
    after: Option<DateTime<Utc>>,
    /// Those that began after `after`, the earliest first.
    known: VecDeque<(DateTime<Utc>, AttemptId)>,
}

impl Watch {
    /// What to ask for with a pull at `now`, if anything; otherwise the pull may wait for a second.
    pub fn query(&mut self, now: Instant) -> Option<RunningQuery> {
        if self.asked.is_some_and(|asked| now < asked + EVERY) {
            return None;
        }
        self.asked = Some(now);
        Some(RunningQuery {
            after: self.after,
            known: self.known.iter().map(|(_, id)| *id).collect(),
        })
    }

    /// Takes note of an answer, of which `told` reached their operations. The others are told again.
    pub fn took(&mut self, answer: &Running, told: &BTreeSet<AttemptId>) {
        let all = answer.attempts.iter().all(|attempt| told.contains(&attempt.attempt_id));
        let new = answer
            .attempts
            .iter()
            .filter(|attempt| told.contains(&attempt.attempt_id));
        self.known
            .extend(new.map(|attempt| (attempt.started_at, attempt.attempt_id)));
        self.known.make_contiguous().sort_unstable();
        if all && !answer.more {
            self.forget_until(answer.as_of - OVERLAP);
        }
        while self.known.len() > KNOWN {
            let Some((earliest, _)) = self.known.front().copied() else {
                break;
            };
            self.forget_until(earliest);
        }
    }

    fn forget_until(&mut self, moment: DateTime<Utc>) {
        self.after = self.after.max(Some(moment));
        self.known.retain(|(began, _)| *began > moment);
    }
}

/// Tells operations what runs; answers with those that know.
pub async fn tell(
    engine: &Arc<Engine>,
    organization: OrganizationId,
    running: &[RunningAttempt],
) -> BTreeSet<AttemptId> {
    let mut by_operation: BTreeMap<OperationId, Vec<&RunningAttempt>> = BTreeMap::new();
    for attempt in running {
        by_operation.entry(attempt.operation_id).or_default().push(attempt);
    }
    let told = by_operation.into_iter().map(|(operation, attempts)| async move {
        let inputs = attempts.iter().map(|attempt| Input::AttemptStarted {
            attempt_id: attempt.attempt_id,
            at: attempt.started_at,
            runner: Some(attempt.runner.clone()),
        });
        let telling = Telling {
            inputs: inputs.collect(),
            done: Vec::new(),
        };
        match engine.tell(organization, operation, telling).await {
            Ok(advance) => engine.hand_over(advance),
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                tracing::debug!(%operation, error = &error as &dyn std::error::Error, "a start could not be told");
                return Vec::new();
            }
        }
        attempts.iter().map(|attempt| attempt.attempt_id).collect()
    });
    join_all(told).await.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn running(as_of: i64, began: impl IntoIterator<Item = i64>, more: bool) -> Running {
        let attempts = began.into_iter().map(|second| RunningAttempt {
            attempt_id: id(second),
            operation_id: OperationId::new_v7(),
            started_at: at(second),
            runner: "r1".into(),
        });
        Running {
            as_of: at(as_of),
            attempts: attempts.collect(),
            more,
        }
    }

    fn id(second: i64) -> AttemptId {
        AttemptId(uuid::Uuid::from_u128(u128::from(second.unsigned_abs())))
    }

    fn all(answer: &Running) -> BTreeSet<AttemptId> {
        answer.attempts.iter().map(|attempt| attempt.attempt_id).collect()
    }

    fn asked(watch: &mut Watch) -> (Option<i64>, Vec<AttemptId>) {
        watch.asked = None;
        let query = watch.query(Instant::now()).unwrap();
        (query.after.map(|after| after.timestamp()), query.known)
    }

    #[test]
    fn a_second_passes_between_two_questions() {
        let (mut watch, now) = (Watch::default(), Instant::now());
        assert_eq!(
            watch.query(now),
            Some(RunningQuery::default()),
            "the first asks for all"
        );
        assert_eq!(watch.query(now + EVERY / 2), None);
        assert!(watch.query(now + EVERY).is_some());
    }

    #[test]
    fn what_began_lately_is_named_and_what_began_before_is_not_asked_for() {
        let mut watch = Watch::default();
        let answer = running(100, [10, 90], false);
        watch.took(&answer, &all(&answer));
        assert_eq!(asked(&mut watch), (Some(70), vec![id(90)]));
    }

    #[test]
    fn what_could_not_be_told_is_asked_for_again() {
        let mut watch = Watch::default();
        let answer = running(100, [10, 90], false);
        watch.took(&answer, &BTreeSet::from([id(90)]));
        assert_eq!(asked(&mut watch), (None, vec![id(90)]));
    }

    #[test]
    fn however_many_run_each_is_told_and_the_question_stays_short() {
        let mut watch = Watch::default();
        let mut told = Vec::new();
        let mut runs: Vec<i64> = (1..=2_500).collect();
        loop {
            let (after, known) = asked(&mut watch);
            assert!(known.len() <= KNOWN);
            runs.retain(|second| after.is_none_or(|after| *second > after) && !known.contains(&id(*second)));
            let answer = running(2_501, runs.iter().copied().take(KNOWN), runs.len() > KNOWN);
            if answer.attempts.is_empty() {
                break;
            }
            told.extend(answer.attempts.iter().map(|attempt| attempt.attempt_id));
            watch.took(&answer, &all(&answer));
        }
        assert_eq!(told, (1..=2_500).map(id).collect::<Vec<_>>());
    }
}
