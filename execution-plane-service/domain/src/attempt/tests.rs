use proptest::prelude::*;

use super::*;

const STATUSES: [ExecutionStatus; 4] = [
    ExecutionStatus::Succeeded,
    ExecutionStatus::Failed,
    ExecutionStatus::Cancelled,
    ExecutionStatus::TimedOut,
];

fn at(state: State) -> Attempt {
    let (epoch, ran) = match state {
        State::Queued => (0, false),
        State::Lost => (2, false),
        State::Running => (1, true),
        _ => (1, false),
    };
    Attempt { state, epoch, ran }
}

fn state_after(attempt: Attempt, event: Event) -> Result<State, Refusal> {
    match attempt.apply(event) {
        Outcome::Changed(next) => Ok(next.state),
        Outcome::Unchanged => Ok(attempt.state),
        Outcome::Refused(refusal) => Err(refusal),
    }
}

#[test]
fn every_event_in_every_state_has_the_outcome_written_here() {
    use State::*;
    let started = |phase| Event::Started { epoch: 1, phase };
    let finished = Event::Finished {
        epoch: 1,
        status: ExecutionStatus::Failed,
    };
    let may = Err(Refusal::MayHaveStarted);
    let ended = Err(Refusal::Ended);
    let none = Err(Refusal::NotHeld);
    let stale = Err(Refusal::StaleEpoch { current: 2 });
    // state, grant, starting, running, cancel, finished, lost
    let table = [
        (Queued, Ok(Leased), none, none, Ok(Cancelled), none, none),
        (
            Leased,
            may,
            Ok(Starting),
            Ok(Running),
            Ok(Cancelling),
            Ok(Failed),
            Ok(Lost),
        ),
        (
            Starting,
            may,
            Ok(Starting),
            Ok(Running),
            Ok(Cancelling),
            Ok(Failed),
            Ok(Lost),
        ),
        (
            Running,
            may,
            Ok(Running),
            Ok(Running),
            Ok(Cancelling),
            Ok(Failed),
            Ok(Lost),
        ),
        (
            Cancelling,
            may,
            Ok(Cancelling),
            Ok(Cancelling),
            Ok(Cancelling),
            Ok(Failed),
            Ok(Lost),
        ),
        (
            Succeeded,
            ended,
            Ok(Succeeded),
            Ok(Succeeded),
            Ok(Succeeded),
            ended,
            Ok(Succeeded),
        ),
        (Failed, ended, Ok(Failed), Ok(Failed), Ok(Failed), ended, Ok(Failed)),
        (
            Cancelled,
            ended,
            Ok(Cancelled),
            Ok(Cancelled),
            Ok(Cancelled),
            ended,
            Ok(Cancelled),
        ),
        (
            TimedOut,
            ended,
            Ok(TimedOut),
            Ok(TimedOut),
            Ok(TimedOut),
            ended,
            Ok(TimedOut),
        ),
        (Lost, ended, stale, stale, Ok(Lost), stale, Ok(Lost)),
    ];
    assert_eq!(table.map(|row| row.0), State::ALL);
    for (state, grant, starting, running, cancel, finish, lost) in table {
        let rows = [
            (Event::Grant, grant),
            (started(Phase::Starting), starting),
            (started(Phase::Running), running),
            (Event::CancelRequested, cancel),
            (finished, finish),
            (Event::RunnerLost, lost),
        ];
        for (event, expected) in rows {
            assert_eq!(state_after(at(state), event), expected, "{event:?} while {state:?}");
        }
    }
}

#[test]
fn a_runner_that_is_lost_before_it_told_of_the_job_leaves_the_start_unknown() {
    assert_eq!(at(State::Queued).job_started(), JobStarted::No);
    assert_eq!(at(State::Leased).job_started(), JobStarted::Unknown);
    assert_eq!(at(State::Starting).job_started(), JobStarted::Unknown);
    assert_eq!(at(State::Running).job_started(), JobStarted::Yes);
    let told_while_cancelling = at(State::Cancelling).apply(Event::Started {
        epoch: 1,
        phase: Phase::Running,
    });
    let Outcome::Changed(attempt) = told_while_cancelling else {
        panic!("{told_while_cancelling:?}");
    };
    assert_eq!(attempt.job_started(), JobStarted::Yes);
}

#[test]
fn every_state_has_a_word_of_its_own() {
    for state in State::ALL {
        assert_eq!(State::parse(state.as_str()), Some(state));
    }
    assert_eq!(State::parse("done"), None);
}

fn events() -> impl Strategy<Value = Event> {
    let phase = prop_oneof![Just(Phase::Starting), Just(Phase::Running)];
    prop_oneof![
        Just(Event::Grant),
        (0_u64..4, phase).prop_map(|(epoch, phase)| Event::Started { epoch, phase }),
        Just(Event::CancelRequested),
        (0_u64..4, 0..4_usize).prop_map(|(epoch, n)| Event::Finished {
            epoch,
            status: STATUSES[n],
        }),
        Just(Event::RunnerLost),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_in_whatever_order(events in proptest::collection::vec(events(), 0..40)) {
        let mut attempt = Attempt::QUEUED;
        let mut grants = 0;
        let mut end = None;
        for event in events {
            let Outcome::Changed(next) = attempt.apply(event) else { continue };
            prop_assert!(end.is_none(), "the end of an attempt never changes");
            prop_assert!(next.epoch >= attempt.epoch, "epochs never go back");
            prop_assert!(next.ran >= attempt.ran, "that it ran is never forgotten");
            if event == Event::Grant {
                grants += 1;
                prop_assert_eq!(attempt.state, State::Queued);
            }
            if let Event::Started { epoch, .. } | Event::Finished { epoch, .. } = event {
                prop_assert_eq!(epoch, attempt.epoch, "stale reports change nothing");
            }
            if next.state.is_terminal() {
                end = Some(next.state);
            }
            attempt = next;
        }
        prop_assert!(grants <= 1, "granted at most once");
        prop_assert_eq!(attempt.state.is_held() , grants == 1 && end.is_none());
    }

    #[test]
    fn a_repeated_event_changes_nothing_more(first in events(), state in 0..10_usize) {
        let attempt = at(State::ALL[state]);
        if let Outcome::Changed(next) = attempt.apply(first) {
            let again = next.apply(first);
            prop_assert!(!matches!(again, Outcome::Changed(_)), "{:?}", again);
        }
    }
}
