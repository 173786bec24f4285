//! The service's clock. Stores keep microseconds, so nothing finer is ever told: what an event says of a time is what
//! a later read says.

use chrono::{DateTime, SubsecRound as _, Utc};

/// Now, to the microsecond.
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}
