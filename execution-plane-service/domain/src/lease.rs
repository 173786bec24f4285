//! The times of a lease. All of them by one clock: the database's.
//!
//! A runner stops its own job before the deadline, by its own monotonic clock; the service declares
//! the attempt lost only after deadline + grace, and never before runners had a fair time to come
//! back after the service itself was away. So a job is never declared lost while its runner could
//! not reach anyone, nor while it may still run.

use chrono::{DateTime, TimeDelta, Utc};

/// How long leases run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// From a grant or a renewal to the deadline.
    pub lease: TimeDelta,
    /// From the deadline until the attempt is declared lost.
    pub grace: TimeDelta,
    /// How long the service must have been reachable without a break before it declares anything
    /// lost.
    pub comeback: TimeDelta,
}

impl LeaseTerms {
    /// The deadline of a lease granted or renewed at `now`.
    #[must_use]
    pub fn deadline(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + self.lease
    }

    /// Whether the attempt is to be declared lost at `now`, when the service has been reachable
    /// since `available_since`.
    #[must_use]
    pub fn is_lost(&self, deadline: DateTime<Utc>, available_since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        now >= deadline + self.grace && now >= available_since + self.comeback + self.grace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn second(n: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(n)
    }

    const TERMS: LeaseTerms = LeaseTerms {
        lease: TimeDelta::seconds(30),
        grace: TimeDelta::seconds(10),
        comeback: TimeDelta::seconds(30),
    };

    #[test]
    fn lost_only_after_deadline_and_grace() {
        let deadline = TERMS.deadline(second(100));
        assert_eq!(deadline, second(130));
        assert!(!TERMS.is_lost(deadline, second(0), second(139)));
        assert!(TERMS.is_lost(deadline, second(0), second(140)));
    }

    #[test]
    fn field_note_40_after_a_restart_runners_have_a_fair_time_to_come_back() {
        let deadline = second(130);
        let restarted = second(1_000);
        assert!(!TERMS.is_lost(deadline, restarted, second(1_039)));
        assert!(TERMS.is_lost(deadline, restarted, second(1_040)));
    }

    proptest! {
        #[test]
        fn once_lost_stays_lost(deadline in 0..1_000_i64, since in 0..1_000_i64, now in 0..3_000_i64, later in 0..1_000_i64) {
            let lost = |now| TERMS.is_lost(second(deadline), second(since), second(now));
            prop_assert!(!lost(now) || lost(now + later));
            prop_assert!(!lost(now) || now >= deadline + 10);
        }
    }
}
