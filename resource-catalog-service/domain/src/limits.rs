//! The stated limits of a resource, and the forms of its labels and environment.
//!
//! They keep a whole resource, as an event carries it, below what a consumer accepts.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::fault::{Fault, FaultCode, escape};
use crate::resource::Resource;

/// Desired state, observed state and connection data of one resource, together, as JSON.
pub const MAX_STATE_BYTES: usize = 256 * 1024;
/// A whole resource as JSON; an event (768 KiB) carries one and leaves room for its envelope.
pub const MAX_RESOURCE_BYTES: usize = 640 * 1024;
/// Nesting of objects and arrays in a state or a schema.
pub const MAX_DEPTH: usize = 32;
/// Labels of one resource; annotations likewise.
pub const MAX_LABELS: usize = 64;
/// One annotation's value.
pub const MAX_ANNOTATION_BYTES: usize = 4 * 1024;
/// One label's value, or the name part of a key.
pub const MAX_LABEL: usize = 63;
/// Edges leaving one resource.
pub const MAX_EDGES: usize = 1_000;
/// Capabilities that one resource provides.
pub const MAX_CAPABILITIES: usize = 200;
/// Pieces of evidence in one write.
pub const MAX_EVIDENCE: usize = 256;
/// One schema, as JSON.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// A description.
pub const MAX_DESCRIPTION: usize = 2_000;

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The length of `value` as JSON, without writing it anywhere.
pub fn json_bytes<T: Serialize>(value: &T) -> usize {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// Faults of a free JSON value at `pointer`: no canonical form, or nested too deep.
#[must_use]
pub fn json_faults(value: &Value, pointer: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Err(error) = kernel::canonical::check(value) {
        let place = match &error {
            kernel::CanonicalError::NumberTooLarge { pointer } | kernel::CanonicalError::NulInString { pointer } => {
                pointer.as_str()
            }
            kernel::CanonicalError::Unserializable(_) => "",
        };
        faults.push(Fault::new(
            format!("{pointer}{place}"),
            FaultCode::NoCanonicalForm,
            error.to_string(),
        ));
    }
    if deeper_than(value, MAX_DEPTH) {
        faults.push(Fault::new(
            pointer,
            FaultCode::NestedTooDeep,
            format!("nested deeper than {MAX_DEPTH} levels"),
        ));
    }
    faults
}

fn deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| deeper_than(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|item| deeper_than(item, levels - 1)),
        _ => false,
    }
}

/// Faults of labels and annotations.
#[must_use]
pub fn label_faults(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (map, pointer) in [(labels, "/labels"), (annotations, "/annotations")] {
        if map.len() > MAX_LABELS {
            let detail = format!("{} entries; at most {MAX_LABELS}", map.len());
            faults.push(Fault::new(pointer, FaultCode::TooMany, detail));
        }
        for key in map.keys().filter(|key| !is_label_key(key)) {
            faults.push(Fault::new(
                format!("{pointer}/{}", escape(key)),
                FaultCode::InvalidLabel,
                "a key is [PREFIX/]NAME: a name of at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
            ));
        }
    }
    for (key, _) in labels.iter().filter(|(_, value)| !is_label_value(value)) {
        faults.push(Fault::new(
            format!("/labels/{}", escape(key)),
            FaultCode::InvalidLabel,
            "a value is empty, or at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
        ));
    }
    for (key, value) in annotations {
        if value.len() > MAX_ANNOTATION_BYTES {
            faults.push(Fault::new(
                format!("/annotations/{}", escape(key)),
                FaultCode::TooLarge,
                format!("{} bytes; at most {MAX_ANNOTATION_BYTES}", value.len()),
            ));
        } else if value.contains('\0') {
            faults.push(Fault::new(
                format!("/annotations/{}", escape(key)),
                FaultCode::NoCanonicalForm,
                "contains NUL",
            ));
        }
    }
    faults
}

fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(p, n)| (Some(p), n));
    let prefix_good = prefix.is_none_or(|p| {
        !p.is_empty()
            && p.len() <= 253
            && p.split('.').all(|part| {
                !part.is_empty()
                    && part
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            })
    });
    prefix_good && !name.is_empty() && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    bytes.len() <= MAX_LABEL
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Faults of an environment's name.
#[must_use]
pub fn environment_faults(environment: Option<&str>) -> Vec<Fault> {
    let good = |name: &str| {
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let bytes = name.as_bytes();
        bytes.len() <= MAX_LABEL
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes
                .iter()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
    };
    match environment {
        Some(name) if !good(name) => vec![Fault::new(
            "/environment",
            FaultCode::InvalidEnvironment,
            "an environment is at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit",
        )],
        _ => Vec::new(),
    }
}

/// Faults of sizes and counts of a whole resource; `state_pointer` says where to blame its state's size.
#[must_use]
pub fn size_faults(resource: &Resource, state_pointer: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    let state = json_bytes(&resource.desired) + json_bytes(&resource.observed) + json_bytes(&resource.connection);
    if state > MAX_STATE_BYTES {
        faults.push(Fault::new(
            state_pointer,
            FaultCode::TooLarge,
            format!(
                "desired state, observed state and connection come to {state} bytes; together at most {MAX_STATE_BYTES}"
            ),
        ));
    }
    let proof: usize = resource
        .provided
        .iter()
        .map(|(name, p)| {
            300 + json_bytes(name) + json_bytes(&p.implies) + json_bytes(&p.evidence) + json_bytes(&p.attributes)
        })
        .sum();
    let words = json_bytes(&resource.labels) + json_bytes(&resource.annotations) + json_bytes(&resource.health.reasons);
    let edges: usize = resource.edges.iter().map(|e| 48 + e.target.as_str().len()).sum();
    let whole = state + proof + words + edges + 2_000;
    if whole > MAX_RESOURCE_BYTES {
        faults.push(Fault::new(
            "",
            FaultCode::TooLarge,
            format!("the whole resource comes to about {whole} bytes; at most {MAX_RESOURCE_BYTES}"),
        ));
    }
    if resource.provided.len() > MAX_CAPABILITIES {
        faults.push(Fault::new(
            "",
            FaultCode::TooMany,
            format!("{} capabilities; at most {MAX_CAPABILITIES}", resource.provided.len()),
        ));
    }
    faults
}
