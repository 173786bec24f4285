//! How long a long poll may wait.

use std::time::Duration;

use api_kit::{FieldError, Problem};

/// Longest wait of any long poll here, in seconds.
const LONGEST: u32 = 30;

/// The time that was asked for; more than there is, is refused and not bent.
pub fn wait(seconds: u32) -> Result<Duration, Problem> {
    if seconds > LONGEST {
        let detail = format!("wait_seconds is 0 to {LONGEST}");
        return Err(Problem::invalid([FieldError::new(
            "/wait_seconds",
            "out_of_range",
            detail,
        )]));
    }
    Ok(Duration::from_secs(seconds.into()))
}
