//! What a person is told when a command cannot do what was asked: what was wrong, where, what to do.

use std::fmt::{self, Write as _};

use crate::exit::Exit;

/// One fault of one field or line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A JSON Pointer, or `FILE:LINE:COLUMN`.
    pub place: String,
    pub problem: String,
}

/// A failed command: a primary line, details by place, a hint.
#[derive(Debug)]
pub struct CliError {
    pub exit: Exit,
    pub message: String,
    pub faults: Vec<Fault>,
    pub hint: Option<String>,
    /// The service's stable code, for `-o json`.
    pub code: Option<String>,
}

impl CliError {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            faults: Vec::new(),
            hint: None,
            code: None,
        }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn fault(mut self, place: impl Into<String>, problem: impl Into<String>) -> Self {
        self.faults.push(Fault {
            place: place.into(),
            problem: problem.into(),
        });
        self
    }

    /// The faults in the order in which a person meets them: by file, then by line and column as numbers.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.faults
            .sort_by(|a, b| place_key(&a.place).cmp(&place_key(&b.place)));
        self
    }

    /// The error as a program reads it.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "error": {
                "message": self.message,
                "code": self.code,
                "exit_code": self.exit.code(),
                "faults": self.faults.iter().map(|f| serde_json::json!({"place": f.place, "problem": f.problem})).collect::<Vec<_>>(),
                "hint": self.hint,
            }
        })
    }
}

/// `FILE:LINE:COLUMN` or `FILE:LINE` in parts.
fn place_key(place: &str) -> (&str, [u64; 2]) {
    let number = |text: &'_ str| -> Option<(usize, u64)> {
        let (rest, number) = text.rsplit_once(':')?;
        Some((rest.len(), number.parse().ok()?))
    };
    let Some((cut, last)) = number(place) else {
        return (place, [0; 2]);
    };
    match number(&place[..cut]) {
        Some((file, line)) => (&place[..file], [line, last]),
        None => (&place[..cut], [last, 0]),
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("error: {}", self.message);
        for fault in &self.faults {
            let place = if fault.place.is_empty() {
                "(whole)"
            } else {
                &fault.place
            };
            write!(text, "\n  {place}: {}", fault.problem)?;
        }
        if let Some(hint) = &self.hint {
            write!(text, "\n  hint: {hint}")?;
        }
        f.write_str(&text)
    }
}

impl std::error::Error for CliError {}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Internal, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_by_file_line_and_column() {
        let places = [
            "b.yaml:2",
            "a.yaml:10:1",
            "a.yaml:9:12",
            "a.yaml:9:2",
            "a.yaml",
            "/labels/x",
        ];
        let error = places
            .iter()
            .fold(CliError::usage("no"), |error, place| error.fault(*place, "wrong"));
        let ordered: Vec<String> = error.in_order().faults.into_iter().map(|fault| fault.place).collect();
        assert_eq!(
            ordered,
            [
                "/labels/x",
                "a.yaml",
                "a.yaml:9:2",
                "a.yaml:9:12",
                "a.yaml:10:1",
                "b.yaml:2"
            ]
        );
    }
}
