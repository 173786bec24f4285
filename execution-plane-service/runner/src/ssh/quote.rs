//! Quoting for POSIX shells: what goes in comes out, byte for byte.

/// `text` as one word.
pub(crate) fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// All of `words`, each one word.
pub(crate) fn words<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    words.into_iter().map(|text| word(text)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn field_note_45_a_shell_gives_back_what_was_quoted(texts in proptest::collection::vec("[^\\x00]{0,30}", 1..4)) {
            let line = format!("printf '%s\\0' {}", words(&texts));
            let nested = format!("exec /bin/sh -c {}", word(&line));
            let output = Command::new("/bin/sh").arg("-c").arg(&nested).output().unwrap();
            let expected: Vec<u8> = texts.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect();
            prop_assert_eq!(output.stdout, expected);
        }
    }
}
