//! Reads a JSON object field by field and keeps *every* fault with its pointer, where serde would
//! stop at the first. A field that nobody asked for is a fault as well.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::fault::{Fault, FaultCode, below};

/// One JSON object while it is read.
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    pointer: String,
    asked: BTreeSet<&'static str>,
    faults: Vec<Fault>,
}

impl<'a> Fields<'a> {
    pub fn new(object: &'a Map<String, Value>, pointer: impl Into<String>) -> Self {
        Self {
            object,
            pointer: pointer.into(),
            asked: BTreeSet::new(),
            faults: Vec::new(),
        }
    }

    /// Reads `value` as an object; `None` and a fault when it is none.
    pub fn of(value: &'a Value, pointer: &str, faults: &mut Vec<Fault>) -> Option<Self> {
        if let Value::Object(object) = value {
            return Some(Self::new(object, pointer));
        }
        faults.push(Fault::new(pointer, FaultCode::WrongType, "an object is expected"));
        None
    }

    /// The pointer of `field`.
    pub fn at(&self, field: &str) -> String {
        below(&self.pointer, field)
    }

    /// The raw value of an optional field; null counts as absent.
    pub fn raw(&mut self, field: &'static str) -> Option<&'a Value> {
        self.asked.insert(field);
        self.object.get(field).filter(|value| !value.is_null())
    }

    pub fn fault(&mut self, field: &str, code: FaultCode, detail: impl Into<String>) {
        let pointer = self.at(field);
        self.faults.push(Fault::new(pointer, code, detail));
    }

    pub fn fault_here(&mut self, code: FaultCode, detail: impl Into<String>) {
        self.faults.push(Fault::new(self.pointer.clone(), code, detail));
    }

    pub fn absorb(&mut self, faults: Vec<Fault>) {
        self.faults.extend(faults);
    }

    fn typed<T>(&mut self, field: &'static str, kind: &str, read: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.raw(field)?;
        let read = read(value);
        if read.is_none() {
            self.fault(field, FaultCode::WrongType, format!("{kind} is expected"));
        }
        read
    }

    pub fn text(&mut self, field: &'static str) -> Option<&'a str> {
        self.typed(field, "a string", Value::as_str)
    }

    /// A string that must be there and not be empty.
    pub fn required_text(&mut self, field: &'static str) -> Option<&'a str> {
        self.require(field);
        let text = self.text(field)?;
        if text.is_empty() {
            self.fault(field, FaultCode::InvalidValue, "must not be empty");
            return None;
        }
        Some(text)
    }

    pub fn flag(&mut self, field: &'static str, default: bool) -> bool {
        self.typed(field, "true or false", Value::as_bool).unwrap_or(default)
    }

    /// A whole number within `range`.
    pub fn number(&mut self, field: &'static str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let number = self.typed(field, "a whole number", Value::as_u64)?;
        if range.contains(&number) {
            return Some(number);
        }
        let detail = format!("must be between {} and {}", range.start(), range.end());
        self.fault(field, FaultCode::InvalidValue, detail);
        None
    }

    pub fn list(&mut self, field: &'static str, most: usize) -> &'a [Value] {
        let list = self
            .typed(field, "a list", Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        if list.len() > most {
            self.fault(field, FaultCode::TooMany, format!("at most {most} entries"));
            return &[];
        }
        list
    }

    pub fn object(&mut self, field: &'static str) -> Option<&'a Map<String, Value>> {
        self.typed(field, "an object", Value::as_object)
    }

    /// A list of strings, each not empty.
    pub fn texts(&mut self, field: &'static str, most: usize) -> Vec<String> {
        let expected = "a string that is not empty is expected";
        self.strings(field, most, expected, |text| !text.is_empty())
    }

    /// A list of words for a program. An empty one is a word too; a NUL ends a word, so none has it.
    pub fn words(&mut self, field: &'static str, most: usize) -> Vec<String> {
        let expected = "a string without NUL is expected";
        self.strings(field, most, expected, |text| !text.contains('\0'))
    }

    fn strings(&mut self, field: &'static str, most: usize, expected: &str, fits: fn(&str) -> bool) -> Vec<String> {
        let mut texts = Vec::new();
        for (index, value) in self.list(field, most).iter().enumerate() {
            match value.as_str().filter(|text| fits(text)) {
                Some(text) => texts.push(text.to_owned()),
                None => {
                    let pointer = below(&self.at(field), &index.to_string());
                    self.faults.push(Fault::new(pointer, FaultCode::WrongType, expected));
                }
            }
        }
        texts
    }

    /// A string that `parse` accepts.
    pub fn parsed<T, E: core::fmt::Display>(
        &mut self,
        field: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        match parse(self.text(field)?) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(field, FaultCode::InvalidValue, error.to_string());
                None
            }
        }
    }

    /// A fault when the field is absent.
    pub fn require(&mut self, field: &'static str) {
        if self.raw(field).is_none() {
            self.fault(field, FaultCode::Required, format!("{field} is required"));
        }
    }

    /// All faults, those of unknown fields too.
    pub fn finish(mut self) -> Vec<Fault> {
        for key in self.object.keys() {
            if !self.asked.contains(key.as_str()) {
                let known: Vec<_> = self.asked.iter().copied().collect();
                let detail = format!("unknown field; known are {}", known.join(", "));
                self.faults
                    .push(Fault::new(below(&self.pointer, key), FaultCode::UnknownField, detail));
            }
        }
        self.faults
    }
}
