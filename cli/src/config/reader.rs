//! Reading a table key by key, so that every fault is found in one pass.

use std::cell::RefCell;
use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::error::{CliError, Fault};

/// What was wrong so far, shared by the readers of one file.
#[derive(Default)]
pub struct Faults(RefCell<Vec<Fault>>);

impl Faults {
    pub fn add(&self, place: impl Into<String>, problem: impl Into<String>) {
        self.0.borrow_mut().push(Fault {
            place: place.into(),
            problem: problem.into(),
        });
    }

    /// The error for `file`, when there is any fault.
    pub fn into_error(self, file: &str) -> Option<CliError> {
        let mut faults = self.0.into_inner();
        if faults.is_empty() {
            return None;
        }
        faults.sort_by(|a, b| a.place.cmp(&b.place));
        let mut error = CliError::usage(format!("the configuration {file} is not usable"));
        error.faults = faults;
        Some(error.hint("docs/configuration.md lists every key; PLATFORM_<SECTION>_<KEY> overrides one"))
    }
}

/// One table of the file. Keys that nobody asked for are faults when it is finished.
pub struct Reader<'a> {
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

impl FromToml for u32 {
    const WHAT: &'static str = "a number from 0";
    fn from_toml(value: &Value) -> Option<Self> {
        value.as_integer().and_then(|number| number.try_into().ok())
    }
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

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
    pub fn new(table: Table, faults: &'a Faults) -> Self {
        Self {
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
        Reader {
            table,
            path: self.place(key),
            taken: RefCell::default(),
            faults: self.faults,
        }
    }

    /// The value of `key`, from the environment or the file.
    pub fn optional<T: FromToml>(&self, key: &str) -> Option<T> {
        self.taken.borrow_mut().insert(key.to_owned());
        let place = self.place(key);
        let variable = format!("PLATFORM_{}", place.replace(['.', '-'], "_").to_uppercase());
        let found = match std::env::var(&variable) {
            Ok(text) => Some((T::from_text(&text), variable)),
            Err(_) => self.table.get(key).map(|value| (T::from_toml(value), place)),
        };
        let (value, place) = found?;
        if value.is_none() {
            self.faults.add(place, format!("this is {}", T::WHAT));
        }
        value
    }

    /// As [`Reader::optional`]; absent is a fault.
    pub fn required<T: FromToml>(&self, key: &str) -> Option<T> {
        let before = self.faults.0.borrow().len();
        let value = self.optional(key);
        if value.is_none() && self.faults.0.borrow().len() == before {
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
            self.faults
                .add(self.place(key), format!("unknown key; known here: {known}"));
        }
    }
}
