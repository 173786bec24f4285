//! Commands: either words, which no shell ever sees, or one line, which a shell reads.

use serde_json::Value;

use crate::fault::{Fault, FaultCode};

/// A command as a job gives it: a list of words or a line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Program and arguments, passed on byte for byte.
    Argv(Vec<String>),
    /// A line for the target's shell.
    Line(String),
}

/// A command and where the JobSpec has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandUse {
    pub pointer: String,
    pub command: CommandText,
}

/// What a command policy looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandText {
    Argv(Vec<String>),
    Line(String),
    /// A whole script, inline or from the bundle.
    Script,
}

impl Command {
    /// For a command policy.
    #[must_use]
    pub fn used_at(&self, pointer: impl Into<String>) -> CommandUse {
        CommandUse {
            pointer: pointer.into(),
            command: match self {
                Self::Argv(words) => CommandText::Argv(words.clone()),
                Self::Line(line) => CommandText::Line(line.clone()),
            },
        }
    }
}

/// A string is a line, a list of strings is words.
pub fn read(value: &Value, pointer: &str, faults: &mut Vec<Fault>) -> Option<Command> {
    let command = match value {
        Value::String(line) if !line.trim().is_empty() => Some(Command::Line(line.clone())),
        Value::Array(words) if !words.is_empty() => words
            .iter()
            .map(|word| word.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .filter(|words| !words[0].is_empty())
            .map(Command::Argv),
        _ => None,
    };
    let has_nul = match &command {
        Some(Command::Argv(words)) => words.iter().any(|word| word.contains('\0')),
        Some(Command::Line(line)) => line.contains('\0'),
        None => false,
    };
    if command.is_none() || has_nul {
        let detail = "a command is a list of words (no shell) or one line of text (read by the shell), without NUL";
        faults.push(Fault::new(pointer, FaultCode::WrongType, detail));
        return None;
    }
    command
}
