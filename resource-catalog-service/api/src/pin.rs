//! The binding pin: a digest over exactly what matching and jobs read of a resource, so that a plan
//! is void when one of those moved and stays good when anything else did.

use std::collections::BTreeMap;

use contracts::LifecycleStatus;
use kernel::{DottedName, Sha256Digest, canonical_digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::Resource;

/// What a pin covers. Host keys are part of `connection`; the environment is covered by
/// `desired_generation`. Not in it: the version, health, observed state, annotations, edges, times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinInputs {
    pub resource_type: DottedName,
    pub lifecycle_status: LifecycleStatus,
    pub labels: BTreeMap<String, String>,
    /// By name.
    pub capabilities: Vec<PinnedCapability>,
    pub desired_generation: i64,
    #[schema(value_type = Object)]
    pub connection: Map<String, Value>,
}

/// A capability as a pin sees it: without its evidence, so that proving it anew moves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinnedCapability {
    pub capability: DottedName,
    pub implies: Vec<DottedName>,
    #[schema(value_type = Object)]
    pub attributes: Map<String, Value>,
}

impl PinInputs {
    /// What the pin of `resource` covers.
    #[must_use]
    pub fn of(resource: &Resource) -> Self {
        let mut capabilities: Vec<PinnedCapability> = resource
            .provided_capabilities
            .iter()
            .map(|provided| PinnedCapability {
                capability: provided.capability.clone(),
                implies: provided.implies.clone(),
                attributes: provided.attributes.clone(),
            })
            .collect();
        capabilities.sort_by(|a, b| a.capability.cmp(&b.capability));
        Self {
            resource_type: resource.resource_type.clone(),
            lifecycle_status: resource.lifecycle_status,
            labels: resource.labels.clone(),
            capabilities,
            desired_generation: resource.desired_generation,
            connection: resource.connection.clone(),
        }
    }

    /// The same, with only those capabilities that provide one of `wanted`: what a requirement read. A plan
    /// pinned so is not voided when a neighbouring operation adds a capability nobody asked about.
    #[must_use]
    pub fn restricted_to(mut self, wanted: &[DottedName]) -> Self {
        self.capabilities
            .retain(|held| wanted.iter().any(|w| held.capability == *w || held.implies.contains(w)));
        self
    }

    /// SHA-256 over the RFC 8785 form of this value. The catalog accepts nothing that has no such form; a value
    /// that has none all the same (it did not come from a catalog) gets a digest that no catalog ever gives.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        canonical_digest(self)
            .unwrap_or_else(|error| Sha256Digest::of(format!("no canonical form: {error}").as_bytes()))
    }
}

/// The pin of `resource`: [`PinInputs::digest`] over all of [`PinInputs::of`]. Whatever `resource.pin` says is not
/// read. A binding is the uid together with this.
#[must_use]
pub fn pin_of(resource: &Resource) -> Sha256Digest {
    PinInputs::of(resource).digest()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource() -> Resource {
        serde_json::from_value(json!({
            "resource_id": "node/web-1",
            "uid": "01890a5d-ac96-774b-bcce-b302099a8057",
            "resource_type": "compute.node",
            "organization_id": "01890a5d-ac96-774b-bcce-b302099a8058",
            "labels": {"rack": "a"},
            "lifecycle_status": "running",
            "health": {"status": "healthy"},
            "connection": {"address": "127.0.0.11", "host_keys": ["ssh-ed25519 AAAA"]},
            "version": 3,
            "desired_generation": 1,
            "provided_capabilities": [
                {"capability": "web.http", "evidence": [], "provenance": {"kind": "observer", "subject": "s"}, "provided_at": "2026-01-01T00:00:00Z"},
                {"capability": "os.linux.debian", "implies": ["os.linux"], "attributes": {"version": "12"}, "evidence": [],
                 "provenance": {"kind": "observer", "subject": "s"}, "provided_at": "2026-01-01T00:00:00Z"}
            ],
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
            "pin": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        }))
        .unwrap()
    }

    #[test]
    fn a_pin_moves_with_what_matching_and_jobs_read() {
        let base = pin_of(&resource());
        let moved: [fn(&mut Resource); 6] = [
            |r| r.resource_type = "compute.node.gpu".parse().unwrap(),
            |r| r.lifecycle_status = LifecycleStatus::Maintenance,
            |r| drop(r.labels.insert("rack".into(), "b".into())),
            |r| drop(r.provided_capabilities.pop()),
            |r| r.desired_generation += 1,
            |r| drop(r.connection.insert("host_keys".into(), json!(["ssh-ed25519 BBBB"]))),
        ];
        for change in moved {
            let mut other = resource();
            change(&mut other);
            assert_ne!(pin_of(&other), base);
        }
    }

    #[test]
    fn a_pin_stays_when_anything_else_moves() {
        let base = pin_of(&resource());
        let mut other = resource();
        other.version += 7;
        other.observed_state.insert("load".into(), json!(3));
        other.health.reasons.push("disk".into());
        other.annotations.insert("note".into(), "x".into());
        other.provided_capabilities.reverse();
        other.provided_capabilities[0].provided_at = chrono::DateTime::UNIX_EPOCH;
        assert_eq!(pin_of(&other), base);
    }

    #[test]
    fn a_restricted_pin_stays_when_an_unread_capability_comes() {
        let wanted = ["os.linux".parse().unwrap()];
        let base = PinInputs::of(&resource()).restricted_to(&wanted);
        assert_eq!(base.capabilities.len(), 1);
        let mut other = resource();
        other.provided_capabilities.remove(0);
        assert_eq!(PinInputs::of(&other).restricted_to(&wanted).digest(), base.digest());
        assert_ne!(pin_of(&other), pin_of(&resource()));
    }

    #[test]
    fn the_canonical_input_of_a_pin_is_fixed() {
        let bytes = kernel::canonical_bytes(&PinInputs::of(&resource())).unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            concat!(
                r#"{"capabilities":[{"attributes":{"version":"12"},"capability":"os.linux.debian","implies":["os.linux"]},"#,
                r#"{"attributes":{},"capability":"web.http","implies":[]}],"#,
                r#""connection":{"address":"127.0.0.11","host_keys":["ssh-ed25519 AAAA"]},"desired_generation":1,"#,
                r#""labels":{"rack":"a"},"lifecycle_status":"running","resource_type":"compute.node"}"#
            )
        );
    }
}
