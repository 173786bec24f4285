//! The rule that every command leaves a fact: what the walk was refused is found in the audit, operation by operation.

use std::collections::{BTreeMap, BTreeSet};

use ::audit::{AuditFact, AuditPage};
use identity::Role;
use serde_json::Value;
use utoipa::openapi::OpenApi;

use super::Walk;
use super::document::Operation;
use super::probe::Probe;

/// What an operation is called in the audit, by its document.
fn action<'a>(document: &'a Value, operation: &Operation) -> Option<&'a str> {
    let method = operation.method.to_ascii_lowercase();
    document["paths"][&operation.template][&method]["x-audit"]["action"].as_str()
}

/// What the audit calls those operations of which each request leaves a fact.
///
/// # Panics
/// When the document cannot be written as JSON.
#[must_use]
pub fn audited_actions(document: &OpenApi) -> BTreeSet<String> {
    let document = serde_json::to_value(document).expect("an OpenAPI document is JSON");
    let audited = |operation: &Operation| {
        let method = operation.method.to_ascii_lowercase();
        let told = &document["paths"][&operation.template][&method]["x-audit"];
        let is_every = told["records"] == "every request";
        told["action"].as_str().filter(|_| is_every).map(str::to_owned)
    };
    super::document::operations(&document)
        .iter()
        .filter_map(audited)
        .collect()
}

/// Holds the audit against what was refused.
pub(super) async fn operations(probe: &mut Probe, walk: &Walk, document: &Value, operations: &[Operation]) {
    if !document["paths"]["/v1/audit"].is_object() {
        return;
    }
    let Some(facts) = facts(probe, walk).await else { return };
    let mut refused: BTreeMap<&str, Vec<&AuditFact>> = BTreeMap::new();
    for fact in facts.iter().filter(|fact| !fact.allowed) {
        refused.entry(&fact.action).or_default().push(fact);
    }
    let writes = operations.iter().filter(|one| one.method != "GET" && !one.is_public);
    for operation in writes {
        let name = format!("{} in the audit", operation.name());
        let action = action(document, operation);
        probe.check(&name, action.is_some(), || "it has no name there".to_owned());
        let found = action
            .and_then(|action| refused.get(action))
            .map_or(&[][..], Vec::as_slice);
        probe.check(&name, !found.is_empty(), || "no refusal of it is there".to_owned());
        // Whoever may not do it at all is refused by role, unless everyone may.
        let others = Role::ALL.into_iter().any(|role| !operation.roles.contains(&role));
        let by_role = found.iter().any(|fact| fact.result == "forbidden");
        probe.check(&name, by_role || !others, || {
            "no refusal for want of a role is there".to_owned()
        });
        let whole = |fact: &&AuditFact| {
            fact.organization_id == walk.organization
                && !fact.actor.is_empty()
                && !fact.subject.is_empty()
                && !fact.result.is_empty()
                && fact.remote_address == "127.0.0.1"
        };
        let lacking = found.iter().find(|fact| !whole(fact));
        probe.check(&name, lacking.is_none(), || {
            format!("a fact does not tell all: {lacking:?}")
        });
    }
}

/// All facts of the walk's organization.
async fn facts(probe: &mut Probe, walk: &Walk) -> Option<Vec<AuditFact>> {
    let (mut facts, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let query = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let request = probe.request("GET", &format!("/v1/audit?limit=1000{query}"));
        let response = probe
            .send("GET /v1/audit", request.bearer_auth(walk.token(&[Role::Admin])))
            .await?;
        let text = response.text().await.unwrap_or_default();
        let page = serde_json::from_str::<AuditPage>(&text);
        probe.check("GET /v1/audit", page.is_ok(), || format!("it is no page: {text}"));
        let page = page.ok()?;
        facts.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Some(facts);
        }
    }
}
