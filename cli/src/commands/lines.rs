//! Output of several at once, cut into whole lines, so that no line holds the words of two.

use std::collections::BTreeMap;

/// What each has said since its last line break.
#[derive(Debug, Default)]
pub struct Lines {
    unfinished: BTreeMap<String, Vec<u8>>,
}

impl Lines {
    /// Takes bytes in and gives every line that is whole by now.
    pub fn push(&mut self, who: &str, bytes: &[u8], mut line: impl FnMut(&str, &str)) {
        let kept = self.unfinished.entry(who.to_owned()).or_default();
        kept.extend_from_slice(bytes);
        let Some(end) = kept.iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let whole: Vec<u8> = kept.drain(..=end).collect();
        for text in whole[..end].split(|byte| *byte == b'\n') {
            line(who, String::from_utf8_lossy(text).trim_end_matches('\r'));
        }
    }

    /// Gives what one said last, when it ended without a line break.
    pub fn end(&mut self, who: &str, mut line: impl FnMut(&str, &str)) {
        let last = self.unfinished.remove(who).unwrap_or_default();
        if !last.is_empty() {
            line(who, &String::from_utf8_lossy(&last));
        }
    }

    /// The same for all.
    pub fn rest(&mut self, mut line: impl FnMut(&str, &str)) {
        for (who, last) in std::mem::take(&mut self.unfinished) {
            if !last.is_empty() {
                line(&who, &String::from_utf8_lossy(&last));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn lines_of_two_do_not_mix() {
        let mut lines = Lines::default();
        let mut said = Vec::new();
        let mut keep = |who: &str, line: &str| said.push(format!("{who}: {line}"));
        lines.push("a", b"one\ntw", &mut keep);
        lines.push("b", b"uno\r\n", &mut keep);
        lines.push("a", b"o\n\nthree", &mut keep);
        lines.end("a", &mut keep);
        lines.rest(&mut keep);
        assert_eq!(said, ["a: one", "b: uno", "a: two", "a: ", "a: three"]);
    }
}
