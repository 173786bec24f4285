//! Who may call what.

use api_kit::{AccessTable, Rule};
use identity::Role::{Admin, Approver, Operator, Service, Viewer};

const READERS: &[identity::Role] = &[Viewer, Operator, Approver, Admin, Service];
const WRITERS: &[identity::Role] = &[Operator, Admin];
const OBSERVERS: &[identity::Role] = &[Operator, Admin, Service];
/// What operations made true comes from control-plane alone.
const CONTROL: &[identity::Role] = &[Service];
const RELEASERS: &[identity::Role] = &[Admin, Service];

const RESOURCE: &str = "/v1/resources/{prefix}/{name}";
const EDGE: &str = "/v1/resources/{prefix}/{name}/edges/{edge_type}/{target_prefix}/{target_name}";
const CAPABILITY: &str = "/v1/resources/{prefix}/{name}/capabilities/{capability}";

/// The table.
pub fn table() -> AccessTable {
    AccessTable::new([
        Rule::new("GET", "/v1/resource-types", READERS),
        Rule::new("GET", "/v1/resource-types/{type_name}", READERS),
        Rule::new("PUT", "/v1/resource-types/{type_name}", WRITERS)
            .if_match()
            .audited("resource_type.put"),
        Rule::new("GET", "/v1/capability-definitions", READERS),
        Rule::new("GET", "/v1/capability-definitions/{capability}", READERS),
        Rule::new("PUT", "/v1/capability-definitions/{capability}", WRITERS)
            .if_match()
            .audited("capability_definition.put"),
        Rule::new("GET", "/v1/resources", READERS),
        Rule::new("POST", "/v1/resources", WRITERS)
            .idempotency_key()
            .audited("resource.create")
            .refuses(&[409]),
        Rule::new("GET", RESOURCE, READERS),
        Rule::new("PUT", RESOURCE, WRITERS).if_match().audited("resource.put"),
        Rule::new("GET", "/v1/resources/{prefix}/{name}/edges", READERS),
        Rule::new("PUT", EDGE, WRITERS)
            .if_match()
            .audited("edge.put")
            .refuses(&[422]),
        Rule::new("DELETE", EDGE, WRITERS)
            .if_match()
            .audited("edge.delete")
            .refuses(&[422]),
        Rule::new("PUT", CAPABILITY, OBSERVERS)
            .if_match()
            .audited("capability.observe"),
        Rule::new("DELETE", CAPABILITY, OBSERVERS)
            .if_match()
            .audited("capability.withdraw")
            .refuses(&[422]),
        Rule::new("POST", "/v1/resource-updates", CONTROL)
            .audited("resource.update")
            .refuses(&[404, 409]),
        Rule::new("POST", "/v1/validations", CONTROL).audited("resources.validate"),
        Rule::new("DELETE", "/v1/finalizers/{operation_id}", RELEASERS).audited("finalizers.release"),
        Rule::new("GET", "/v1/watch/resources", READERS).refuses(&[410]),
        Rule::new("GET", "/v1/feed", READERS).refuses(&[410]),
        Rule::new("GET", "/v1/snapshot", READERS),
    ])
}
