//! Command policies: which commands a job may run.
//!
//! Invariants: nothing is allowed that no rule allows; a policy that forbids shells lets nothing
//! through that a shell would read (a line, a script, `sh -c`), whatever the patterns say; the same
//! function judges at submission and before the start.

mod pattern;

use serde_json::Value;

use crate::fault::{Fault, FaultCode, below};
use crate::job::{CommandText, CommandUse};
pub use pattern::glob;

/// Most patterns, words of a pattern, and paths.
const MAX_RULES: usize = 256;
const MAX_WORDS: usize = 64;

/// A policy's rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandPolicy {
    /// Word by word; `*` in a word stands for any characters, a last word `...` for any further words.
    pub allow: Vec<Vec<String>>,
    /// When there are any: programs and scripts given as paths must match one. `*` stays within a
    /// segment, `**` crosses them.
    pub paths: Vec<String>,
    pub forbid_shell: bool,
}

/// Why a command is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("no pattern of the policy allows it")]
    NoPattern,
    #[error("the policy allows no program at {0}")]
    Path(String),
    #[error("the policy forbids shells: a command must be a list of words, and no shell with -c")]
    Shell,
}

impl CommandPolicy {
    /// Reads a policy's body: `{allow: [{argv: [...]}], paths: [...], forbid_shell}`.
    ///
    /// # Errors
    /// Every fault.
    pub fn parse(body: &Value) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let Value::Object(fields) = body else {
            return Err(vec![Fault::new("", FaultCode::WrongType, "an object is expected")]);
        };
        let mut policy = Self::default();
        for (key, value) in fields {
            let pointer = below("", key);
            match key.as_str() {
                "allow" => policy.allow = patterns(value, &pointer, &mut faults),
                "paths" => policy.paths = words(value, &pointer, MAX_RULES, &mut faults),
                "forbid_shell" => match value.as_bool() {
                    Some(forbid) => policy.forbid_shell = forbid,
                    None => faults.push(Fault::new(pointer, FaultCode::WrongType, "true or false is expected")),
                },
                _ => faults.push(Fault::new(pointer, FaultCode::UnknownField, "unknown field")),
            }
        }
        if faults.is_empty() { Ok(policy) } else { Err(faults) }
    }

    /// Judges one command.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn judge(&self, command: &CommandText) -> Result<(), Violation> {
        let (words, read_by_shell): (Vec<&str>, bool) = match command {
            CommandText::Argv(words) => (words.iter().map(String::as_str).collect(), starts_shell(words)),
            CommandText::Line(line) => (vec!["sh", "-c", line], true),
            CommandText::Script => (vec!["sh", "-c", "<script>"], true),
        };
        if self.forbid_shell && read_by_shell {
            return Err(Violation::Shell);
        }
        let program = words.first().copied().unwrap_or_default();
        if program.contains('/') && !self.paths.is_empty() && !self.paths.iter().any(|path| glob(path, program)) {
            return Err(Violation::Path(program.to_owned()));
        }
        let allowed = self.allow.iter().any(|pattern| pattern::matches(pattern, &words));
        if allowed { Ok(()) } else { Err(Violation::NoPattern) }
    }

    /// Judges every command of a job; each violation at its place.
    #[must_use]
    pub fn violations(&self, commands: &[CommandUse]) -> Vec<Fault> {
        commands
            .iter()
            .filter_map(|used| {
                let violation = self.judge(&used.command).err()?;
                Some(Fault::new(&used.pointer, FaultCode::NotAllowed, violation.to_string()))
            })
            .collect()
    }
}

const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "csh", "tcsh", "fish"];
/// Programs that run the command in their arguments.
const CARRIERS: [&str; 9] = [
    "env", "sudo", "doas", "nice", "nohup", "setsid", "timeout", "xargs", "busybox",
];

/// Whether a shell is started, directly or by a program that runs its arguments.
fn starts_shell(words: &[String]) -> bool {
    let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let Some(program) = words.first().map(name) else {
        return false;
    };
    if SHELLS.contains(&program.as_str()) {
        return true;
    }
    CARRIERS.contains(&program.as_str())
        && words
            .iter()
            .skip(1)
            .map(name)
            .any(|word| SHELLS.contains(&word.as_str()))
}

fn patterns(value: &Value, pointer: &str, faults: &mut Vec<Fault>) -> Vec<Vec<String>> {
    let Some(list) = value.as_array().filter(|list| list.len() <= MAX_RULES) else {
        let detail = format!("a list of at most {MAX_RULES} patterns is expected");
        faults.push(Fault::new(pointer, FaultCode::WrongType, detail));
        return Vec::new();
    };
    let mut patterns = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let pointer = below(pointer, &index.to_string());
        let argv = item
            .as_object()
            .filter(|fields| fields.len() == 1)
            .and_then(|f| f.get("argv"));
        let Some(argv) = argv else {
            faults.push(Fault::new(
                pointer,
                FaultCode::WrongType,
                "{\"argv\": [words]} is expected",
            ));
            continue;
        };
        let pointer = below(&pointer, "argv");
        let pattern = words(argv, &pointer, MAX_WORDS, faults);
        if pattern.first().is_none_or(|first| first == "...") {
            let detail = "a pattern starts with the program's word";
            faults.push(Fault::new(&pointer, FaultCode::InvalidValue, detail));
        }
        if pattern.iter().rev().skip(1).any(|word| word == "...") {
            faults.push(Fault::new(
                &pointer,
                FaultCode::InvalidValue,
                "... may only be the last word",
            ));
        }
        patterns.push(pattern);
    }
    patterns
}

fn words(value: &Value, pointer: &str, most: usize, faults: &mut Vec<Fault>) -> Vec<String> {
    let read = |list: &Vec<Value>| {
        list.iter()
            .map(|w| w.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
    };
    let words = value.as_array().filter(|list| list.len() <= most).and_then(read);
    words.unwrap_or_else(|| {
        let detail = format!("a list of at most {most} strings is expected");
        faults.push(Fault::new(pointer, FaultCode::WrongType, detail));
        Vec::new()
    })
}

#[cfg(test)]
mod tests;
