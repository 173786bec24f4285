//! What lists, the feed and the watch have in common in their queries.

use api_kit::{FieldError, Problem};
use kernel::version::VersionError;
use kernel::{DottedName, Selector, VersionRequirement};
use resource_catalog_domain::CapabilityFilter;

/// Items of a page when nothing is said.
const DEFAULT_LIMIT: u32 = 100;
/// Items of the largest page.
const MAX_LIMIT: u32 = 1_000;

/// The number of items, refused when it is none.
pub fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked {
        None => Ok(DEFAULT_LIMIT),
        Some(limit @ 1..=MAX_LIMIT) => Ok(limit),
        Some(other) => Err(fault(
            "/limit",
            "invalid",
            format!("{other} is not a number from 1 to {MAX_LIMIT}"),
        )),
    }
}

/// A label selector; the fault of a wrong one carries its position.
pub fn selector(text: Option<&str>) -> Result<Selector, Problem> {
    Selector::parse(text.unwrap_or_default()).map_err(|error| {
        fault("/selector", "invalid_selector", error.to_string()).with("position", error.position as u64)
    })
}

/// A capability, and the range that its version must lie in.
pub fn capability(name: Option<&DottedName>, range: Option<&str>) -> Result<Option<CapabilityFilter>, Problem> {
    let version: Option<VersionRequirement> = range
        .map(str::parse)
        .transpose()
        .map_err(|error: VersionError| fault("/capability_version", "invalid_version_range", error.to_string()))?;
    match (name, version) {
        (Some(name), version) => Ok(Some(CapabilityFilter {
            name: name.clone(),
            version,
        })),
        (None, None) => Ok(None),
        (None, Some(_)) => {
            let detail = "a range is of a capability: give one too";
            Err(fault("/capability_version", "missing_capability", detail))
        }
    }
}

/// 422 with one fault.
pub fn fault(pointer: &str, code: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid([FieldError::new(pointer, code, detail)])
}
