//! What a fact is to a copy that knows some version.

/// The version that a fact reports, seen from what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Known already, or older: nothing changes.
    Old,
    /// The next version.
    Next,
    /// Versions in between were never seen. The fact carries the full state, so it is applied.
    Gap,
}

/// Judges `version` by what is `known`, which is nothing for a resource that was never seen.
#[must_use]
pub const fn judge(known: Option<i64>, version: i64) -> Verdict {
    let known = match known {
        Some(known) => known,
        None => 0,
    };
    if version <= known {
        Verdict::Old
    } else if version == known + 1 {
        Verdict::Next
    } else {
        Verdict::Gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_is_dropped_next_is_applied_and_a_jump_is_told() {
        assert_eq!(judge(Some(3), 2), Verdict::Old);
        assert_eq!(judge(Some(3), 3), Verdict::Old);
        assert_eq!(judge(Some(3), 4), Verdict::Next);
        assert_eq!(judge(Some(3), 5), Verdict::Gap);
        assert_eq!(judge(None, 1), Verdict::Next);
        assert_eq!(judge(None, 2), Verdict::Gap);
    }
}
