//! Where a stream may be cut without splitting a character.

/// How many bytes at the end of `bytes` are the beginning of a character whose rest may follow.
/// Invalid bytes are not held back: they are kept as they are.
pub(crate) fn unfinished(bytes: &[u8]) -> usize {
    let window = bytes.len().saturating_sub(3);
    for place in (window..bytes.len()).rev() {
        let expected = match bytes[place] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        let have = bytes.len() - place;
        return if have < expected { have } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cut_never_splits_a_character(text in "\\PC{0,20}", cut in 0_usize..80) {
            let bytes = &text.as_bytes()[..cut.min(text.len())];
            let whole = &bytes[..bytes.len() - unfinished(bytes)];
            prop_assert!(std::str::from_utf8(whole).is_ok());
        }

        #[test]
        fn invalid_bytes_are_never_held_for_long(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            prop_assert!(unfinished(&bytes) <= 3);
        }
    }
}
