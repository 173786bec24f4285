//! Rules about files that reviewers would otherwise repeat: size, names, and words that mean
//! unfinished work.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use walkdir::{DirEntry, WalkDir};

use crate::Violation;

/// Lines that a Rust file may have before it must say why it has more.
const LONGEST: usize = 450;
/// A test file reads as a list of cases, so it may be longer.
const LONGEST_TEST: usize = 600;
/// A file that says this, with the reason after it, may be longer.
const REASON: &str = "Long because";
const TEXT: [&str; 12] = [
    "rs", "toml", "md", "sql", "yml", "yaml", "py", "j2", "sh", "json", "html", "lock",
];
/// Names that say nothing of what is inside.
const EMPTY_NAMES: [&str; 9] = [
    "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils", "stuff",
];
const SKIPPED: [&str; 4] = ["target", ".git", ".sqlx", "node_modules"];

/// Unfinished work, spelled apart so that this file does not hold the words itself.
fn forbidden_words() -> Vec<String> {
    [("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("HA", "CK")]
        .map(|(a, b)| format!("{a}{b}"))
        .into()
}

/// What Rust code must not hold; strings, for the same reason.
fn forbidden_code() -> Vec<(String, &'static str)> {
    vec![
        (format!("#[{}", "ignore"), "an ignored test proves nothing"),
        (format!("{}!(", "todo"), "unfinished"),
        (format!("{}!(", "unimplemented"), "unfinished"),
    ]
}

pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for path in files(root) {
        let place = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        found.extend(check_name(&place));
        if is_text(&path) && !place.ends_with("Cargo.lock") {
            let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            found.extend(check_text(&place, &text));
        }
    }
    found.sort();
    Ok(found)
}

fn files(root: &Path) -> Vec<PathBuf> {
    let wanted = |entry: &DirEntry| !SKIPPED.iter().any(|skipped| entry.file_name() == OsStr::new(skipped));
    let entries = WalkDir::new(root).into_iter().filter_entry(wanted).flatten();
    entries
        .filter(|entry| entry.file_type().is_file())
        .map(DirEntry::into_path)
        .collect()
}

/// Scripts without an ending are text as well.
fn is_text(path: &Path) -> bool {
    path.extension()
        .is_none_or(|extension| TEXT.iter().any(|text| extension == OsStr::new(text)))
}

fn check_name(place: &str) -> Option<Violation> {
    let empty = |part: &str| EMPTY_NAMES.contains(&part.split('.').next().unwrap_or(part));
    place
        .split('/')
        .any(empty)
        .then(|| Violation::new(place, "the name says nothing of what is inside"))
}

fn check_text(place: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let at = || format!("{place}:{}", number + 1);
        for word in forbidden_words() {
            if line
                .split(|c: char| !c.is_ascii_alphanumeric())
                .any(|part| part == word)
            {
                found.push(Violation::new(
                    at(),
                    format!("{word}: finish it, or file it where work is kept"),
                ));
            }
        }
        if place.ends_with(".rs") {
            let code = forbidden_code()
                .into_iter()
                .filter(|(code, _)| line.contains(code.as_str()));
            found.extend(code.map(|(code, why)| Violation::new(at(), format!("{code}: {why}"))));
        }
    }
    if place.ends_with(".rs") {
        found.extend(check_rust(place, text));
    }
    found
}

fn check_rust(place: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    let longest = if place.contains("/tests/") {
        LONGEST_TEST
    } else {
        LONGEST
    };
    if lines > longest && !gives_reason(text) {
        let what = format!("{lines} lines, more than {longest}: split it, or say \"{REASON} …\" in a comment");
        found.push(Violation::new(place, what));
    }
    let is_root = place.ends_with("src/lib.rs") || place.ends_with("src/main.rs");
    if is_root && !text.starts_with("//!") {
        found.push(Violation::new(
            place,
            "a crate opens with the reason why it exists (//!)",
        ));
    }
    found
}

fn gives_reason(text: &str) -> bool {
    let reason = |line: &str| {
        let comment = line.trim_start().strip_prefix("//")?;
        let after = comment.split_once(REASON)?.1;
        (after.trim().len() > 10).then_some(())
    };
    text.lines().any(|line| reason(line).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(place: &str, text: &str) -> Vec<String> {
        check_text(place, text)
            .into_iter()
            .map(|violation| violation.to_string())
            .collect()
    }

    #[test]
    fn words_of_unfinished_work_are_told_with_their_line() {
        for word in forbidden_words() {
            let told = told("docs/a.md", &format!("fine\n({word}: later)\n"));
            assert_eq!(told.len(), 1);
            assert!(told[0].starts_with("docs/a.md:2"), "{told:?}");
        }
        assert_eq!(told("docs/a.md", "a mast\u{f3}don and a HACKSAW"), Vec::<String>::new());
    }

    #[test]
    fn ignored_tests_and_unfinished_code_are_told() {
        for (code, _) in forbidden_code() {
            assert_eq!(told("libs/a/src/b.rs", &code).len(), 1, "{code}");
            assert_eq!(told("docs/a.md", &code), Vec::<String>::new());
        }
    }

    #[test]
    fn a_long_file_must_say_why() {
        let long = "let x = 1;\n".repeat(LONGEST + 1);
        assert_eq!(told("libs/a/src/b.rs", &long).len(), 1);
        assert_eq!(told("libs/a/tests/it/b.rs", &long), Vec::<String>::new());
        let reasoned = format!("// {REASON} one table of cases reads better whole.\n{long}");
        assert_eq!(told("libs/a/src/b.rs", &reasoned), Vec::<String>::new());
        let empty = format!("// {REASON}.\n{long}");
        assert_eq!(told("libs/a/src/b.rs", &empty).len(), 1);
    }

    #[test]
    fn a_crate_opens_with_its_reason() {
        assert_eq!(told("libs/a/src/lib.rs", "pub mod b;\n").len(), 1);
        assert_eq!(told("libs/a/src/lib.rs", "//! Why.\n"), Vec::<String>::new());
    }

    #[test]
    fn names_say_what_is_inside() {
        for bad in ["libs/utils/src/lib.rs", "cli/src/helpers.rs", "cli/src/common/mod.rs"] {
            assert!(check_name(bad).is_some(), "{bad}");
        }
        assert_eq!(check_name("cli/src/uncommon.rs"), None);
    }
}
