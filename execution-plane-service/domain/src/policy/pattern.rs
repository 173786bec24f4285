//! Patterns over words and paths. At worst pattern × text steps: no pattern can make matching slow.

/// Whether `words` match `pattern`, word by word.
pub fn matches(pattern: &[String], words: &[&str]) -> bool {
    match pattern.split_last() {
        Some((last, before)) if last == "..." => {
            words.len() >= before.len() && before.iter().zip(words).all(|(p, w)| wildcard(p, w))
        }
        _ => pattern.len() == words.len() && pattern.iter().zip(words).all(|(p, w)| wildcard(p, w)),
    }
}

/// Whether a path matches: `*` within a segment, `**` across segments. A path with `..` matches
/// nothing: it may lead elsewhere.
#[must_use]
pub fn glob(pattern: &str, path: &str) -> bool {
    if path.split('/').any(|segment| segment == ".." || segment == ".") {
        return false;
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    segments(&pattern, &path)
}

/// Backtracks to the last `**` only, which is enough, as for a single `*` in a word.
fn segments(pattern: &[&str], path: &[&str]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < path.len() {
        if pattern.get(p) == Some(&"**") {
            retry = Some((p + 1, t));
            p += 1;
        } else if pattern.get(p).is_some_and(|segment| wildcard(segment, path[t])) {
            p += 1;
            t += 1;
        } else if let Some((after, from)) = retry {
            retry = Some((after, from + 1));
            p = after;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|segment| *segment == "**")
}

/// `*` stands for any characters.
fn wildcard(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p + 1, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((after, from)) = retry {
            retry = Some((after, from + 1));
            p = after;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
