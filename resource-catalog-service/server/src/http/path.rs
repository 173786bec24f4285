//! Ids in paths. What cannot be one names nothing: 404.

use api_kit::Problem;
use kernel::{DottedName, ResourceId};
use resource_catalog_domain::{Edge, EdgeType};

/// The resource id `prefix/name`.
pub fn resource_id(prefix: &str, name: &str) -> Result<ResourceId, Problem> {
    let text = format!("{prefix}/{name}");
    text.parse()
        .map_err(|_| Problem::not_found(format_args!("resource {}", shown(&text))))
}

/// A dotted name; `what` says of what kind.
pub fn dotted_name(what: &str, text: &str) -> Result<DottedName, Problem> {
    text.parse()
        .map_err(|_| Problem::not_found(format_args!("{what} {}", shown(text))))
}

/// A dotted name that is about to be given to something new.
pub fn new_name(what: &str, text: &str) -> Result<DottedName, Problem> {
    text.parse().map_err(|error: kernel::NameError| {
        Problem::new(422, "invalid_name", "The name cannot be used").detail(format!("For a {what}: {error}."))
    })
}

/// A resource id that may be given to something new.
pub fn new_resource_id(prefix: &str, name: &str) -> Result<ResourceId, Problem> {
    format!("{prefix}/{name}")
        .parse()
        .map_err(|error: kernel::ResourceIdError| {
            Problem::new(422, "invalid_resource_id", "The resource id cannot be used").detail(format!("{error}."))
        })
}

/// The edge of these parts.
pub fn edge(edge_type: &str, target_prefix: &str, target_name: &str) -> Result<Edge, Problem> {
    let Some(edge_type) = EdgeType::from_word(edge_type) else {
        return Err(Problem::not_found(format_args!("edge type {}", shown(edge_type))));
    };
    Ok(Edge {
        edge_type,
        target: resource_id(target_prefix, target_name)?,
    })
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}
