//! `pack.yaml`: what the pack is called, its version, its retry policies, where its content is.

use std::collections::BTreeMap;

use contracts::ExitCategory;
use control_plane_plan::RetryPolicy;
use semver::Version;

use crate::fault::{FaultCode, Faults};
use crate::reader::{Fields, Placed, choice};
use crate::reading::{DEFAULT_RETRY, check_name};
use crate::yaml::{Key, Node};

/// The file that makes a directory a pack.
pub(crate) const MANIFEST: &str = "pack.yaml";
const HOUR: u32 = 3600;

const CATEGORIES: [(&str, ExitCategory); 5] = [
    ("success", ExitCategory::Success),
    ("validation_error", ExitCategory::ValidationError),
    ("infrastructure_error", ExitCategory::InfrastructureError),
    ("policy_error", ExitCategory::PolicyError),
    ("unknown", ExitCategory::Unknown),
];

/// What `pack.yaml` says.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<Version>,
    pub(crate) description: String,
    /// Without a slash at its end.
    pub(crate) content: Option<Placed<String>>,
    pub(crate) retry_policies: BTreeMap<String, RetryPolicy>,
}

pub(crate) fn read(root: &Node, faults: &Faults) -> Option<Manifest> {
    let mut fields = Fields::open(root, "pack", faults)?;
    let name = fields.required_text("name");
    if let Some(name) = &name {
        check_name(name, "pack's name", faults);
    }
    fields.required("version");
    let version = fields.parsed("version");
    let description = fields.prose("description");
    let content = fields.text("content").map(|found| Placed {
        at: found.at,
        value: found.value.trim_end_matches('/').to_owned(),
    });
    let mut retry_policies = built_in();
    for (key, node) in fields.map("retry_policies") {
        if let Some(policy) = retry_policy(key, node, faults) {
            retry_policies.insert(key.name.clone(), policy);
        }
    }
    fields.finish();
    Some(Manifest {
        name: name.map(|n| n.value),
        version,
        description,
        content,
        retry_policies,
    })
}

/// `retry/default`: what the infrastructure broke is tried three times in all; `retry/none`: never again.
/// A pack may state them otherwise.
pub(crate) fn built_in() -> BTreeMap<String, RetryPolicy> {
    let policy = |name: &str, max_attempts| RetryPolicy {
        name: name.to_owned(),
        max_attempts,
        backoff_seconds: 2,
        backoff_max_seconds: 60,
        on: vec![ExitCategory::InfrastructureError],
    };
    [policy(DEFAULT_RETRY, 3), policy("retry/none", 1)]
        .into_iter()
        .map(|policy| (policy.name.clone(), policy))
        .collect()
}

fn retry_policy(key: &Key, node: &Node, faults: &Faults) -> Option<RetryPolicy> {
    let good = key.name.strip_prefix("retry/").is_some_and(crate::reading::is_name);
    if !good {
        faults.add(
            key.at,
            FaultCode::InvalidValue,
            format!("`{}` cannot be a retry policy's name", key.name),
            "write retry/NAME with lower-case letters, digits, `-` and `_`",
        );
    }
    let mut fields = Fields::open(node, "retry policy", faults)?;
    let max_attempts = fields.integer("max_attempts", 1, 100).unwrap_or(1);
    let backoff_seconds = fields.integer("backoff_seconds", 0, HOUR).unwrap_or(2);
    let backoff_max_seconds = fields
        .integer("backoff_max_seconds", 0, 24 * HOUR)
        .unwrap_or(backoff_seconds.max(60));
    let mut on: Vec<ExitCategory> = fields
        .list("on")
        .iter()
        .filter_map(|node| choice(node, "on", &CATEGORIES[1..], faults))
        .collect();
    on.sort_unstable();
    on.dedup();
    fields.finish();
    if on.is_empty() {
        on.push(ExitCategory::InfrastructureError);
    }
    Some(RetryPolicy {
        name: key.name.clone(),
        max_attempts,
        backoff_seconds,
        backoff_max_seconds: backoff_max_seconds.max(backoff_seconds),
        on,
    })
}
