//! Looks through a JSON text for what must not get in, whatever type it will become: duplicate
//! keys, NUL in strings, integers that canonical JSON would bend, nesting past a limit.
//!
//! Nothing is built; the text is only walked.

use core::cell::RefCell;
use core::fmt;
use std::collections::HashSet;

use kernel::canonical::MAX_SAFE_INTEGER;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::FieldError;
use crate::json::escape;

/// Deepest accepted nesting.
const MAX_DEPTH: usize = 64;
/// Faults told at once.
const MAX_FAULTS: usize = 100;

/// Every fault in `text`.
///
/// # Errors
/// The text is not well-formed JSON.
pub(crate) fn check(text: &[u8]) -> Result<Vec<FieldError>, serde_json::Error> {
    let faults = RefCell::new(Vec::new());
    let mut json = serde_json::Deserializer::from_slice(text);
    let pointer = RefCell::new(String::new());
    let walk = Walk {
        faults: &faults,
        pointer: &pointer,
        depth: 0,
    };
    walk.deserialize(&mut json)?;
    json.end()?;
    Ok(faults.into_inner())
}

#[derive(Clone, Copy)]
struct Walk<'a> {
    faults: &'a RefCell<Vec<FieldError>>,
    pointer: &'a RefCell<String>,
    depth: usize,
}

impl Walk<'_> {
    fn fault(&self, code: &str, detail: &str) {
        let mut faults = self.faults.borrow_mut();
        if faults.len() < MAX_FAULTS {
            faults.push(FieldError::new(self.pointer.borrow().clone(), code, detail));
        }
    }

    fn inside(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    /// Runs `step` with `token` on the pointer.
    fn at<T>(&self, token: &str, step: impl FnOnce() -> T) -> T {
        let length = self.pointer.borrow().len();
        {
            let mut pointer = self.pointer.borrow_mut();
            pointer.push('/');
            pointer.push_str(&escape(token));
        }
        let outcome = step();
        self.pointer.borrow_mut().truncate(length);
        outcome
    }

    fn text(&self, text: &str) {
        if text.contains('\0') {
            self.fault("nul_in_string", "a string must not contain NUL");
        }
    }

    fn too_deep<E: Error>(&self) -> Result<(), E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        // An integer too long for 64 bits arrives as a float.
        if number.abs() > MAX_SAFE_INTEGER as f64 && number.fract() == 0.0 && number.abs() < 1e21 {
            self.fault("number_too_large", "integers end at 2^53");
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        if number > MAX_SAFE_INTEGER {
            self.fault("number_too_large", "integers end at 2^53");
        }
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.visit_u64(number.unsigned_abs())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.text(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.too_deep()?;
        let mut index = 0_usize;
        while self
            .at(&index.to_string(), || items.next_element_seed(self.inside()))?
            .is_some()
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        self.too_deep()?;
        let mut seen = HashSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            self.at(&key, || {
                self.text(&key);
                if seen.contains(&key) {
                    self.fault("duplicate_field", "the field is given twice");
                }
                fields.next_value_seed(self.inside())
            })?;
            seen.insert(key);
        }
        Ok(())
    }
}
