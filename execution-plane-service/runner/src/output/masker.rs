//! Masking: every byte that belongs to a form of a secret becomes part of a `******`.
//!
//! Invariants: what a streaming masker lets out is the same however its input was cut into chunks;
//! it holds back only bytes that may be the beginning of a form, at most [`LONGEST_FORM`] of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use execution_plane_ports::SecretValue;
use serde_json::Value;

use super::encodings::{LONGEST_FORM, forms};

/// What stands in place of a secret; its length tells nothing.
pub(crate) const MASK: &[u8] = b"******";
/// Shorter values would turn ordinary output into asterisks.
const SHORTEST_SECRET: usize = 6;
/// Words that ordinary output is full of.
const COMMON: [&str; 22] = [
    "true",
    "false",
    "null",
    "none",
    "yes",
    "no",
    "on",
    "off",
    "ok",
    "root",
    "admin",
    "user",
    "test",
    "default",
    "localhost",
    "changed",
    "failed",
    "success",
    "enabled",
    "disabled",
    "production",
    "password",
];

/// Why a value cannot be kept out of logs without ruining them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unmaskable {
    #[error(
        "it is shorter than {SHORTEST_SECRET} bytes: hiding it would garble ordinary output; use a longer secret, or pass it as a parameter if it is none"
    )]
    TooShort,
    #[error(
        "it is a common word: hiding it would garble ordinary output; use a real secret, or pass it as a parameter if it is none"
    )]
    CommonWord,
}

/// Whether `value` can be masked.
pub(crate) fn maskable(value: &SecretValue) -> Result<(), Unmaskable> {
    let trimmed = value.expose().trim_ascii();
    let lower = trimmed.to_ascii_lowercase();
    if COMMON.iter().any(|word| word.as_bytes() == lower) {
        return Err(Unmaskable::CommonWord);
    }
    let first = trimmed.first();
    if trimmed.len() < SHORTEST_SECRET || trimmed.iter().all(|byte| Some(byte) == first) {
        return Err(Unmaskable::TooShort);
    }
    Ok(())
}

/// The forms of all secrets of one attempt. Cheap to clone.
#[derive(Clone)]
pub(crate) struct MaskSet(Option<Arc<Forms>>);

struct Forms {
    automaton: AhoCorasick,
    /// Sorted, to find out whether a tail of the input begins one.
    sorted: Vec<Vec<u8>>,
    begins: [bool; 256],
}

impl MaskSet {
    /// Builds the set. No value, no work later.
    pub(crate) fn of<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Self {
        let all: BTreeSet<Vec<u8>> = values.into_iter().flat_map(|value| forms(value.expose())).collect();
        let sorted: Vec<Vec<u8>> = all.into_iter().filter(|form| form.len() >= SHORTEST_SECRET).collect();
        if sorted.is_empty() {
            return Self(None);
        }
        let mut begins = [false; 256];
        for form in &sorted {
            begins[usize::from(form[0])] = true;
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(&sorted)
            .expect("forms are few and short, far below what an automaton can number");
        Self(Some(Arc::new(Forms {
            automaton,
            sorted,
            begins,
        })))
    }

    /// Masks a whole text.
    pub(crate) fn mask(&self, bytes: &[u8]) -> Vec<u8> {
        let mut masker = StreamMasker::new(self.clone());
        let mut out = Vec::with_capacity(bytes.len());
        masker.feed(bytes, &mut out);
        masker.finish(&mut out);
        out
    }

    /// Masks a text that stays one.
    pub(crate) fn mask_text(&self, text: &str) -> String {
        if self.0.is_none() {
            return text.to_owned();
        }
        String::from_utf8_lossy(&self.mask(text.as_bytes())).into_owned()
    }

    /// Masks every string in `value`, keys too.
    pub(crate) fn mask_json(&self, value: Value) -> Value {
        if self.0.is_none() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.mask_text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.mask_json(item)).collect(),
            Value::Object(fields) => fields
                .into_iter()
                .map(|(key, item)| (self.mask_text(&key), self.mask_json(item)))
                .collect(),
            other => other,
        }
    }

    /// Whether any form of a secret stands in `bytes`.
    pub(crate) fn finds_in(&self, bytes: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|forms| forms.automaton.is_match(bytes))
    }
}

/// Masks one stream.
pub(crate) struct StreamMasker {
    set: MaskSet,
    /// Bytes that came in and were not let out yet, because a form may have begun in them.
    held: Vec<u8>,
    /// How many bytes at the start of `held` belong to a form that was recognized already.
    masked: usize,
    /// The mask for the bytes before `held` was written, and they touch it.
    in_mask: bool,
}

impl StreamMasker {
    pub(crate) fn new(set: MaskSet) -> Self {
        Self {
            set,
            held: Vec::new(),
            masked: 0,
            in_mask: false,
        }
    }

    /// Takes `bytes` and appends to `out` what is safe to show.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(forms) = self.set.0.clone() else {
            out.extend_from_slice(bytes);
            return;
        };
        self.held.extend_from_slice(bytes);
        let keep_from = begun_at(&forms, &self.held);
        self.release(&forms, keep_from, out);
    }

    /// No more bytes follow.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(forms) = self.set.0.clone() {
            self.release(&forms, self.held.len(), out);
        }
    }

    /// Lets out `held[..end]`, masked. Forms may overlap: a byte is hidden when any form covers it.
    fn release(&mut self, forms: &Forms, end: usize, out: &mut Vec<u8>) {
        let mut position = 0;
        let mut covered = self.masked;
        for (from, to) in merged(forms, &self.held, self.masked) {
            if from >= end {
                break;
            }
            self.show(position.max(covered), from, out);
            self.hide(from.max(position), to.min(end), out);
            position = to.min(end);
            covered = to;
        }
        self.show(position, end, out);
        self.masked = covered.saturating_sub(end);
        self.held.drain(..end);
    }

    fn show(&mut self, from: usize, to: usize, out: &mut Vec<u8>) {
        if from < to {
            out.extend_from_slice(&self.held[from..to]);
            self.in_mask = false;
        }
    }

    fn hide(&mut self, from: usize, to: usize, out: &mut Vec<u8>) {
        if from < to {
            if !self.in_mask {
                out.extend_from_slice(MASK);
            }
            self.in_mask = true;
        }
    }
}

/// All places that forms cover, merged where they overlap or touch; `already` bytes at the start are
/// covered from before.
fn merged(forms: &Forms, bytes: &[u8], already: usize) -> Vec<(usize, usize)> {
    let mut places: Vec<(usize, usize)> = forms
        .automaton
        .find_overlapping_iter(bytes)
        .map(|found| (found.start(), found.end()))
        .collect();
    if already > 0 {
        places.push((0, already));
    }
    places.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::with_capacity(places.len());
    for (from, to) in places {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// The first place from which the rest of `bytes` may be the beginning of a form.
fn begun_at(forms: &Forms, bytes: &[u8]) -> usize {
    let window = bytes.len().saturating_sub(LONGEST_FORM);
    (window..bytes.len())
        .find(|&place| forms.begins[usize::from(bytes[place])] && begins_form(&forms.sorted, &bytes[place..]))
        .unwrap_or(bytes.len())
}

fn begins_form(sorted: &[Vec<u8>], tail: &[u8]) -> bool {
    let place = sorted.partition_point(|form| form.as_slice() <= tail);
    sorted.get(place).is_some_and(|form| form.starts_with(tail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    fn set(values: &[&str]) -> MaskSet {
        let values: Vec<SecretValue> = values.iter().map(|&value| SecretValue::from(value)).collect();
        MaskSet::of(&values)
    }

    fn in_pieces(set: &MaskSet, bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
        let mut masker = StreamMasker::new(set.clone());
        let mut out = Vec::new();
        let mut rest = bytes;
        for &cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            masker.feed(piece, &mut out);
            rest = after;
        }
        masker.feed(rest, &mut out);
        masker.finish(&mut out);
        out
    }

    /// A value, and what base64 shows of it wherever it begins within the encoded text: told without the
    /// masker's own list of forms.
    fn traces(value: &[u8]) -> Vec<Vec<u8>> {
        let encoded = |before: usize| {
            let whole = STANDARD.encode([&[0; 2][..before], value].concat());
            let (first, last) = ((before * 8).div_ceil(6), (before + value.len()) * 8 / 6);
            whole.as_bytes()[first..last].to_vec()
        };
        [value.to_vec(), encoded(0), encoded(1), encoded(2)].into()
    }

    #[test]
    fn field_note_47_every_encoding_of_a_secret_is_hidden() {
        let secret = "p@ss \"word\" <&>'é/€\\ 1";
        let set = set(&[secret]);
        let base64 = |prefix: &str| STANDARD.encode(format!("{prefix}{secret}:tail"));
        for shown in [
            secret.to_owned(),
            base64("u"),
            base64("us"),
            base64("use"),
            serde_json::json!({"a": [secret]}).to_string(),
            Value::from(serde_json::json!({"a": secret}).to_string()).to_string(),
            format!("'{}'", secret.replace('\'', "'\\''")),
            "p%40ss%20%22word%22%20%3C%26%3E%27%C3%A9%2F%E2%82%AC%5C%201".to_owned(),
            "p%40ss+%22word%22+%3C%26%3E%27%C3%A9%2F%E2%82%AC%5C+1".to_owned(),
            "p@ss &quot;word&quot; &lt;&amp;&gt;&apos;é/€\\ 1".to_owned(),
            hex::encode(secret),
        ] {
            let masked = String::from_utf8_lossy(&set.mask(format!("<<{shown}>>").as_bytes())).into_owned();
            assert!(masked.contains("******"), "{shown} is shown as {masked}");
            assert!(
                !masked.contains("word") && !masked.contains("ss "),
                "{shown} is shown as {masked}"
            );
        }
    }

    #[test]
    fn field_note_47_a_multi_line_key_is_hidden_line_by_line_and_wrapped() {
        let lines: Vec<String> = (0..40)
            .map(|line| format!("{}{line:02}", "AbCdEfGhIj".repeat(6)))
            .collect();
        let key = format!("-----BEGIN KEY-----\n{}\n}}\n-----END KEY-----\n", lines.join("\n"));
        let set = set(&[&key]);
        for line in &lines {
            assert_eq!(set.mask(format!("x {line} y").as_bytes()), b"x ****** y");
        }
        let wrapped: Vec<u8> = STANDARD
            .encode(&key)
            .as_bytes()
            .chunks(76)
            .flat_map(|line| [line, b"\n"].concat())
            .collect();
        let masked = String::from_utf8(set.mask(&wrapped)).unwrap();
        assert!(masked.chars().all(|c| c == '*' || c == '\n'), "{masked}");
        assert_eq!(set.mask(b"} is a brace"), b"} is a brace", "short lines stay readable");
    }

    #[test]
    fn field_note_48_short_and_common_values_are_refused() {
        for value in [
            "true",
            "1",
            "a",
            "",
            " root\n",
            "False",
            "12345",
            "aaaaaaaaaa",
            "Production",
        ] {
            assert!(maskable(&value.into()).is_err(), "{value:?}");
        }
        for value in ["hunter2!", "correct horse", "abcdef"] {
            assert!(maskable(&value.into()).is_ok(), "{value:?}");
        }
    }

    #[test]
    fn nothing_is_held_back_that_begins_no_secret() {
        let mut masker = StreamMasker::new(set(&["sesame-open"]));
        let mut out = Vec::new();
        masker.feed(b"plain text, ses", &mut out);
        assert_eq!(out, b"plain text, ");
        masker.feed(b"sion", &mut out);
        assert_eq!(out, b"plain text, session");
    }

    proptest! {
        #[test]
        fn masking_does_not_depend_on_where_chunks_end(
            noise in proptest::collection::vec("[a-c]{0,9}", 1..6),
            secret in "[a-c]{6,14}",
            other in "[a-c]{6,9}",
            cuts in proptest::collection::vec(0_usize..7, 0..40),
        ) {
            let set = set(&[&secret, &other]);
            let text = noise.join(&secret).into_bytes();
            let whole = set.mask(&text);
            prop_assert_eq!(&in_pieces(&set, &text, &cuts), &whole);
            let shown = String::from_utf8(whole).unwrap();
            prop_assert!(!shown.contains(&secret) && !shown.contains(&other), "{}", shown);
        }

        #[test]
        fn canaries_in_any_bytes_never_come_through(
            value in proptest::collection::vec(any::<u8>(), 8..60),
            before in proptest::collection::vec(any::<u8>(), 0..50),
            after in proptest::collection::vec(any::<u8>(), 0..50),
            cuts in proptest::collection::vec(0_usize..20, 0..20),
        ) {
            let secret = SecretValue::new(value.clone());
            prop_assume!(maskable(&secret).is_ok());
            let set = MaskSet::of([&secret]);
            let text = [before.as_slice(), &value, &after].concat();
            let encoded = STANDARD.encode(&text).into_bytes();
            for bytes in [text, encoded] {
                let shown = in_pieces(&set, &bytes, &cuts);
                prop_assert!(!set.finds_in(&shown), "{:?}", shown);
                for trace in traces(&value) {
                    prop_assert!(!shown.windows(trace.len()).any(|window| window == trace), "{:?}", shown);
                }
                prop_assert!(shown.windows(MASK.len()).any(|w| w == MASK));
            }
        }
    }
}
