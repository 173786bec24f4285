//! Canonical JSON (RFC 8785) and digests over it.
//!
//! Numbers that the canonical form would bend (integers beyond 2^53) and NUL in strings (which
//! PostgreSQL's jsonb refuses) are errors here, so that a digest never depends on who re-serialized
//! the value.

use serde::Serialize;
use serde_json::Value;

use crate::digest::Sha256Digest;

/// The largest integer that canonical JSON carries without loss.
pub const MAX_SAFE_INTEGER: u64 = 9_007_199_254_740_992;

/// Why a value has no canonical form. `pointer` is the JSON Pointer of the offending value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// An integer beyond ±2^53.
    #[error("the number at {pointer:?} does not survive canonical JSON: integers end at 2^53")]
    NumberTooLarge { pointer: String },
    /// A NUL character in a string or key.
    #[error("the string at {pointer:?} contains NUL")]
    NulInString { pointer: String },
    /// The value could not be serialized at all.
    #[error("the value cannot be written as JSON: {0}")]
    Unserializable(String),
}

/// The RFC 8785 bytes of `value`.
///
/// # Errors
/// [`CanonicalError`] when the value has no faithful canonical form.
pub fn canonical_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let value = serde_json::to_value(value).map_err(|e| CanonicalError::Unserializable(e.to_string()))?;
    check(&value)?;
    serde_json_canonicalizer::to_vec(&value).map_err(|e| CanonicalError::Unserializable(e.to_string()))
}

/// SHA-256 over [`canonical_bytes`].
///
/// # Errors
/// As [`canonical_bytes`].
pub fn canonical_digest<T: Serialize>(value: &T) -> Result<Sha256Digest, CanonicalError> {
    canonical_bytes(value).map(|bytes| Sha256Digest::of(&bytes))
}

/// Checks that `value` survives canonical JSON and jsonb unchanged.
///
/// # Errors
/// The first offending place, by JSON Pointer.
pub fn check(value: &Value) -> Result<(), CanonicalError> {
    walk(value, &mut String::new())
}

fn walk(value: &Value, pointer: &mut String) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) => {
            let bent = number.as_u64().is_some_and(|n| n > MAX_SAFE_INTEGER)
                || number.as_i64().is_some_and(|n| n.unsigned_abs() > MAX_SAFE_INTEGER);
            if bent {
                return Err(CanonicalError::NumberTooLarge {
                    pointer: pointer.clone(),
                });
            }
        }
        Value::String(text) if text.contains('\0') => {
            return Err(CanonicalError::NulInString {
                pointer: pointer.clone(),
            });
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                step(item, &index.to_string(), pointer)?;
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                if key.contains('\0') {
                    return Err(CanonicalError::NulInString {
                        pointer: pointer.clone(),
                    });
                }
                step(item, &key.replace('~', "~0").replace('/', "~1"), pointer)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn step(item: &Value, token: &str, pointer: &mut String) -> Result<(), CanonicalError> {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(token);
    walk(item, pointer)?;
    pointer.truncate(length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_by_utf16_and_numbers_take_the_shortest_form() {
        let value = json!({"b": 1.0, "a": [1e3, "\u{20ac}"], "A": null});
        let bytes = canonical_bytes(&value).unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "{\"A\":null,\"a\":[1000,\"\u{20ac}\"],\"b\":1}"
        );
    }

    #[test]
    fn what_would_be_bent_is_refused_with_its_place() {
        let error = canonical_bytes(&json!({"a": [9_007_199_254_740_993_u64]})).unwrap_err();
        assert_eq!(error, CanonicalError::NumberTooLarge { pointer: "/a/0".into() });
        let error = canonical_bytes(&json!({"a/b": "x\0y"})).unwrap_err();
        assert_eq!(
            error,
            CanonicalError::NulInString {
                pointer: "/a~1b".into()
            }
        );
    }

    proptest! {
        #[test]
        fn canonical_form_is_a_fixed_point(keys in proptest::collection::btree_map("[a-zé€]{0,4}", -1000_i64..1000, 0..8)) {
            let first = canonical_bytes(&keys).unwrap();
            let again: Value = serde_json::from_slice(&first).unwrap();
            prop_assert_eq!(first, canonical_bytes(&again).unwrap());
        }
    }
}
