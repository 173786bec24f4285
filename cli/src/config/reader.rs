//! Reading a table key by key, so that every fault is found in one pass.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::error::{CliError, Fault};

/// What was wrong so far, shared by the readers of one file.
#[derive(Default)]
pub struct Faults {
    all: RefCell<Vec<Fault>>,
    unknown: Cell<usize>,
}

impl Faults {
    pub fn add(&self, place: impl Into<String>, problem: impl Into<String>) {
        self.all.borrow_mut().push(Fault {
            place: place.into(),
            problem: problem.into(),
        });
    }

    /// How many keys nobody asked for.
    pub fn unknown(&self) -> usize {
        self.unknown.get()
    }

    /// The error for `file`, when there is any fault.
    pub fn into_error(self, file: &str) -> Option<CliError> {
        let mut faults = self.all.into_inner();
        if faults.is_empty() {
            return None;
        }
        faults.sort_by(|a, b| a.place.cmp(&b.place));
        let mut error = CliError::usage(format!("the configuration {file} is not usable"));
        error.faults = faults;
        Some(error.hint("docs/configuration.md lists every key; PLATFORM_<ROLE>_<SECTION>_<KEY> overrides one"))
    }
}

/// Where variables are read.
type Environment = fn(&str) -> Option<String>;

/// One table of the file. Keys that nobody asked for are faults when it is finished.
pub struct Reader<'a> {
    /// The role in the names of variables; rows of a list have none.
    role: Option<String>,
    environment: Environment,
    table: Table,
    path: String,
    taken: RefCell<BTreeSet<String>>,
    faults: &'a Faults,
}

/// A value that a key can hold.
pub trait FromToml: Sized {
    /// What it is called in a message.
    const WHAT: &'static str;
    fn from_toml(value: &Value) -> Option<Self>;
    /// The same from an environment variable.
    fn from_text(text: &str) -> Option<Self>;
}

impl FromToml for String {
    const WHAT: &'static str = "text";
    fn from_toml(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl FromToml for bool {
    const WHAT: &'static str = "true or false";
    fn from_toml(value: &Value) -> Option<Self> {
        value.as_bool()
    }
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// Whole numbers from 0, as far as the type holds them.
macro_rules! whole_numbers {
    ($($number:ty),+) => {$(
        impl FromToml for $number {
            const WHAT: &'static str = "a whole number from 0, and not too large";
            fn from_toml(value: &Value) -> Option<Self> {
                value.as_integer().and_then(|number| number.try_into().ok())
            }
            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )+};
}

whole_numbers!(u16, u32, u64);

impl FromToml for f64 {
    const WHAT: &'static str = "a number";
    fn from_toml(value: &Value) -> Option<Self> {
        value
            .as_float()
            .or_else(|| value.as_integer().map(|number| number as Self))
    }
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl FromToml for Vec<String> {
    const WHAT: &'static str = "a list of texts";
    fn from_toml(value: &Value) -> Option<Self> {
        value
            .as_array()?
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect()
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(
            text.split(',')
                .map(|part| part.trim().to_owned())
                .filter(|part| !part.is_empty())
                .collect(),
        )
    }
}

impl<'a> Reader<'a> {
    /// The whole file of `role`; variables are those of the process.
    pub fn new(role: &str, table: Table, faults: &'a Faults) -> Self {
        Self::with_environment(role, table, faults, |name| std::env::var(name).ok())
    }

    /// The same with other variables.
    pub fn with_environment(role: &str, table: Table, faults: &'a Faults, environment: Environment) -> Self {
        Self {
            role: Some(role.to_owned()),
            environment,
            table,
            path: String::new(),
            taken: RefCell::default(),
            faults,
        }
    }

    fn place(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// The table below `key`; an empty one when it is absent, so that its required keys are told.
    pub fn section(&self, key: &str) -> Reader<'a> {
        self.taken.borrow_mut().insert(key.to_owned());
        let table = match self.table.get(key) {
            None => Table::new(),
            Some(Value::Table(table)) => table.clone(),
            Some(_) => {
                self.faults
                    .add(self.place(key), "this is a section: [KEY] with keys below it");
                Table::new()
            }
        };
        self.below(table, self.place(key), self.role.clone())
    }

    fn below(&self, table: Table, path: String, role: Option<String>) -> Reader<'a> {
        Reader {
            role,
            environment: self.environment,
            table,
            path,
            taken: RefCell::default(),
            faults: self.faults,
        }
    }

    /// The tables of the list `[[key]]`, counted from 1 in what is told; no variable reaches into them.
    pub fn rows(&self, key: &str) -> Vec<Reader<'a>> {
        self.taken.borrow_mut().insert(key.to_owned());
        let Some(value) = self.table.get(key) else {
            return Vec::new();
        };
        let rows = value.as_array().and_then(|items| {
            items
                .iter()
                .map(|item| item.as_table().cloned())
                .collect::<Option<Vec<_>>>()
        });
        let Some(rows) = rows else {
            self.fault(
                key,
                "this is a list of sections: [[KEY]] with keys below it, once for each",
            );
            return Vec::new();
        };
        rows.into_iter()
            .enumerate()
            .map(|(index, row)| self.below(row, format!("{}.{}", self.place(key), index + 1), None))
            .collect()
    }

    /// The variable that wins over `place`.
    fn variable(&self, place: &str) -> Option<String> {
        let role = self.role.as_ref()?;
        Some(
            format!("PLATFORM_{role}_{}", place.replace('.', "_"))
                .replace('-', "_")
                .to_uppercase(),
        )
    }

    /// The value of `key`, from the environment or the file.
    pub fn optional<T: FromToml>(&self, key: &str) -> Option<T> {
        self.taken.borrow_mut().insert(key.to_owned());
        let place = self.place(key);
        let set = self
            .variable(&place)
            .and_then(|name| Some(((self.environment)(&name)?, name)));
        let found = match set {
            Some((text, variable)) => Some((T::from_text(&text), variable)),
            None => self.table.get(key).map(|value| (T::from_toml(value), place)),
        };
        let (value, place) = found?;
        if value.is_none() {
            self.faults.add(place, format!("this is {}", T::WHAT));
        }
        value
    }

    /// As [`Reader::optional`]; absent is a fault.
    pub fn required<T: FromToml>(&self, key: &str) -> Option<T> {
        let before = self.faults.all.borrow().len();
        let value = self.optional(key);
        if value.is_none() && self.faults.all.borrow().len() == before {
            self.faults.add(self.place(key), format!("missing; it is {}", T::WHAT));
        }
        value
    }

    /// A required value that is read further by `parse`.
    pub fn parsed<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text: String = self.required(key)?;
        parse(&text)
            .map_err(|problem| self.faults.add(self.place(key), problem))
            .ok()
    }

    /// An optional value that is read further by `parse`.
    pub fn parsed_optional<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text: String = self.optional(key)?;
        parse(&text)
            .map_err(|problem| self.faults.add(self.place(key), problem))
            .ok()
    }

    /// A map of texts below `key`.
    pub fn texts(&self, key: &str) -> std::collections::BTreeMap<String, String> {
        self.taken.borrow_mut().insert(key.to_owned());
        let Some(value) = self.table.get(key) else {
            return std::collections::BTreeMap::new();
        };
        let pairs = value.as_table().and_then(|t| {
            t.iter()
                .map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
                .collect()
        });
        pairs.unwrap_or_else(|| {
            self.faults.add(self.place(key), "this is a section of texts");
            std::collections::BTreeMap::new()
        })
    }

    /// Tells a fault found by looking at several keys together.
    pub fn fault(&self, key: &str, problem: impl Into<String>) {
        self.faults.add(self.place(key), problem);
    }

    /// Ends the reading of this table: whatever nobody asked for is unknown.
    pub fn finish(self) {
        let taken = self.taken.borrow();
        for key in self.table.keys().filter(|key| !taken.contains(*key)) {
            let known = taken.iter().cloned().collect::<Vec<_>>().join(", ");
            self.faults.unknown.set(self.faults.unknown.get() + 1);
            self.faults
                .add(self.place(key), format!("unknown key; known here: {known}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One variable of each kind: with the role, without it, of another role.
    fn variables(name: &str) -> Option<String> {
        let set = [
            ("PLATFORM_CONTROL_PLANE_DATABASE_URL", "from the environment"),
            ("PLATFORM_LISTEN", "by accident"),
            ("PLATFORM_RUNNER_LISTEN", "for another"),
            ("PLATFORM_CONTROL_PLANE_ROW_1_KEY", "into a row"),
        ];
        let found = set.iter().find(|(known, _)| *known == name)?;
        Some(found.1.to_owned())
    }

    #[test]
    fn a_variable_reaches_the_role_in_its_name_alone() {
        let faults = Faults::default();
        let text = "listen = \"file\"\n[database]\nurl = \"file\"\n[[row]]\nkey = \"file\"\n";
        let reader = Reader::with_environment("control-plane", toml::from_str(text).unwrap(), &faults, variables);
        assert_eq!(reader.optional::<String>("listen").unwrap(), "file");
        let database = reader.section("database");
        assert_eq!(database.optional::<String>("url").unwrap(), "from the environment");
        assert_eq!(reader.rows("row")[0].optional::<String>("key").unwrap(), "file");
    }
}
