//! Waiting between tries: longer each time, never in step with others, and not for ever.

use std::time::Duration;

/// How often a call that got no answer is repeated, where repeating is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Tries in all, at least one.
    pub tries: u32,
    /// The pause before the second try; it doubles with each further one.
    pub first_pause: Duration,
    /// No pause is longer.
    pub longest_pause: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            tries: 3,
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(2),
        }
    }
}

impl Retries {
    /// One try only: for callers that have a schedule of their own.
    pub const NONE: Self = Self {
        tries: 1,
        first_pause: Duration::ZERO,
        longest_pause: Duration::ZERO,
    };

    /// The pause after `failed` tries: between half and all of the doubled one, so that clients that
    /// failed together do not return together.
    #[must_use]
    pub fn pause(&self, failed: u32) -> Duration {
        let doubled = self
            .first_pause
            .saturating_mul(1_u32 << failed.saturating_sub(1).min(16));
        doubled.min(self.longest_pause).mul_f64(rand::random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_bounded() {
        let retries = Retries::default();
        for failed in 1..40 {
            assert!(retries.pause(failed) <= retries.longest_pause);
        }
        assert!(retries.pause(1) >= retries.first_pause / 2);
        assert!(retries.pause(4) >= retries.first_pause * 4);
    }
}
