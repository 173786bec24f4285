//! Packs, parameters and plans carry references to secrets, never values. What looks like a value is
//! refused; the remedy is always a reference.

use serde_json::Value;

/// Words that, as a part of a name, say that its value is a secret.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "private_key",
    "credentials",
];

/// The beginning and end of the line that opens a private key in PEM or OpenSSH form.
const KEY_OPENS: &str = "-----BEGIN ";
const KEY_CLOSES: &str = "PRIVATE KEY-----";

/// Whether a value under this name would be a secret. Names that say "reference" or "file" are not.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let points_elsewhere = ["_ref", "_refs", "_file", "_path", "_name", "_id"]
        .iter()
        .any(|suffix| name.ends_with(suffix));
    !points_elsewhere && SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Whether a text holds a private key.
#[must_use]
pub fn holds_private_key(text: &str) -> bool {
    text.match_indices(KEY_OPENS).any(|(at, _)| {
        let line = text[at..].lines().next().unwrap_or_default();
        line.contains(KEY_CLOSES)
    })
}

/// Whether any text of a value holds a private key.
#[must_use]
pub fn value_holds_private_key(value: &Value) -> bool {
    match value {
        Value::String(text) => holds_private_key(text),
        Value::Array(items) => items.iter().any(value_holds_private_key),
        Value::Object(fields) => fields.values().any(value_holds_private_key),
        _ => false,
    }
}

/// Whether a schema lets text in: a flag or a number named `rotate_token` is no secret.
pub(crate) fn holds_text(schema: &Value) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::String(kind)) => !matches!(kind.as_str(), "boolean" | "integer" | "number" | "null"),
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        Some(_) => true,
    }
}

/// JSON Pointers of fixed texts under secret names, and of private keys, in a value.
pub(crate) fn places_in(value: &Value) -> Vec<String> {
    let mut places = Vec::new();
    walk(value, false, &mut String::new(), &mut places);
    places
}

fn walk(value: &Value, named_secret: bool, pointer: &mut String, places: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let is_reference = text.is_empty() || text.starts_with("vault://");
            if (named_secret && !is_reference) || holds_private_key(text) {
                places.push(pointer.clone());
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let length = pointer.len();
                pointer.push_str(&format!("/{index}"));
                walk(item, named_secret, pointer, places);
                pointer.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                let length = pointer.len();
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                walk(item, is_secret_name(key), pointer, places);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_told_from_references() {
        let key = format!("{KEY_OPENS}OPENSSH {KEY_CLOSES}\nx");
        let value = json!({
            "db_password": "x", "db_password_ref": "vault://a/b", "api_token": "vault://a/b", "title": "my password",
            "nested": [{"secret-key": "y"}], "text": key, "empty_token": "", "token_count": 3
        });
        assert_eq!(places_in(&value), ["/db_password", "/nested/0/secret-key", "/text"]);
    }
}
