//! Who may call what. What approval may is never implied by what execution may, nor the other way round:
//! the gate's own role is asked for by the domain on top of this.

use api_kit::Rule;
use identity::Role;

const READERS: &[Role] = &[Role::Viewer, Role::Operator, Role::Approver, Role::Admin, Role::Service];
const OPERATORS: &[Role] = &[Role::Operator, Role::Admin];
const DECIDERS: &[Role] = &[Role::Operator, Role::Approver, Role::Admin];

/// The rules for operations.
#[must_use]
pub fn rules() -> Vec<Rule> {
    vec![
        Rule::new("POST", "/v1/operations", OPERATORS)
            .audited("operation.create")
            .idempotency_key()
            .refuses(&[404, 409]),
        Rule::new("GET", "/v1/operations", READERS),
        Rule::new("GET", "/v1/operations/{operation_id}", READERS),
        Rule::new("GET", "/v1/operations/{operation_id}/node-runs", READERS),
        Rule::new("GET", "/v1/operations/{operation_id}/events", READERS),
        Rule::new("GET", "/v1/operations/{operation_id}/watch", READERS),
        Rule::new("GET", "/v1/operations/{operation_id}/proof", READERS).refuses(&[409]),
        Rule::new("POST", "/v1/operations/{operation_id}/interventions", OPERATORS)
            .audited("operation.intervene")
            .idempotency_key()
            .if_match()
            .refuses(&[409]),
        Rule::new("GET", "/v1/operations/{operation_id}/gates", READERS),
        Rule::new(
            "POST",
            "/v1/operations/{operation_id}/gates/{gate_id}/decisions",
            DECIDERS,
        )
        .audited("gate.decide")
        .idempotency_key()
        .refuses(&[409, 412]),
        Rule::new("GET", "/v1/claims", READERS),
        Rule::new("GET", "/v1/runtime", READERS),
        Rule::new("GET", "/v1/feed", READERS).refuses(&[409, 410]),
    ]
}
