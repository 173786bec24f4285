//! A scripted catalog: three endpoints over a few resources in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use axum::{Json, Router};
use contracts::{LifecycleStatus, ResourceUpdateCommand};
use kernel::id::{CommandId, OperationId, ResourceUid};
use resource_catalog_api::{
    Outcome, PinInputs, UpdateOutcome, ValidatedResource, ValidationRequest, ValidationResponse, ValidationResult,
};
use serde_json::json;

use crate::plans;

#[derive(Default)]
pub struct Facts {
    pub down: bool,
    pub versions: BTreeMap<ResourceUid, i64>,
    /// Labels that moved a resource's pin.
    pub moved: BTreeSet<ResourceUid>,
    pub validations: u64,
    pub finalizers: BTreeSet<OperationId>,
    pub updates: BTreeMap<CommandId, (ResourceUpdateCommand, i64)>,
    /// Deliveries, repeats counted.
    pub deliveries: u64,
    pub calls_refused: u64,
}

#[derive(Clone, Default)]
pub struct Catalog(Arc<Mutex<Facts>>);

impl Catalog {
    pub fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap()
    }

    pub fn router(&self) -> Router {
        Router::new()
            .route("/v1/validations", post(validate))
            .route("/v1/resource-updates", post(update))
            .route("/v1/finalizers/{operation_id}", delete(release))
            .with_state(self.clone())
    }

    fn up(&self) -> Result<MutexGuard<'_, Facts>, Response> {
        let mut facts = self.facts();
        if facts.down {
            facts.calls_refused += 1;
            let problem = json!({"title": "Not available", "status": 503, "code": "unavailable"});
            let kind = [("content-type", "application/problem+json")];
            return Err((StatusCode::SERVICE_UNAVAILABLE, kind, problem.to_string()).into_response());
        }
        Ok(facts)
    }
}

/// What a pin of host `host` covers.
pub fn pin_inputs(uid: ResourceUid, moved: bool) -> PinInputs {
    let mut labels = BTreeMap::from([("uid".to_owned(), uid.to_string())]);
    if moved {
        labels.insert("moved".to_owned(), "yes".to_owned());
    }
    PinInputs {
        resource_type: "compute.node".parse().unwrap(),
        lifecycle_status: LifecycleStatus::Running,
        labels,
        capabilities: Vec::new(),
        desired_generation: 1,
        connection: serde_json::from_value(json!({"address": "127.0.0.1"})).unwrap(),
    }
}

async fn validate(state: State<Catalog>, request: Json<ValidationRequest>) -> Response {
    let mut facts = match state.up() {
        Ok(facts) => facts,
        Err(response) => return response,
    };
    facts.validations += 1;
    let resources: Vec<ValidationResult> = request
        .resources
        .iter()
        .map(|item| {
            let uid = item.uid.unwrap();
            let inputs = pin_inputs(uid, facts.moved.contains(&uid));
            ValidationResult {
                resource_id: item.resource_id.clone(),
                valid: true,
                faults: Vec::new(),
                current: Some(ValidatedResource {
                    uid,
                    version: *facts.versions.get(&uid).unwrap_or(&1),
                    pin: inputs.clone().digest(),
                    pin_inputs: inputs,
                    environment: Some("demo".to_owned()),
                }),
            }
        })
        .collect();
    if request.set_finalizers {
        facts.finalizers.extend(request.operation_id);
    }
    Json(ValidationResponse {
        valid: true,
        finalizers_set: request.set_finalizers,
        resources,
    })
    .into_response()
}

async fn update(state: State<Catalog>, command: Json<ResourceUpdateCommand>) -> Response {
    let mut facts = match state.up() {
        Ok(facts) => facts,
        Err(response) => return response,
    };
    let Json(command) = command;
    facts.deliveries += 1;
    let known = facts.updates.get(&command.command_id).map(|(_, version)| *version);
    let outcome = if known.is_some() {
        Outcome::Replayed
    } else {
        Outcome::Applied
    };
    let version = known.unwrap_or_else(|| {
        let version = facts.versions.entry(command.uid.unwrap()).or_insert(1);
        *version += 1;
        *version
    });
    let answer = UpdateOutcome {
        command_id: command.command_id,
        resource_id: command.resource_id.clone(),
        outcome,
        first_outcome: known.map(|_| Outcome::Applied),
        uid: command.uid,
        version: Some(version),
        conflict: None,
        errors: Vec::new(),
    };
    facts.updates.insert(command.command_id, (command, version));
    Json(answer).into_response()
}

async fn release(state: State<Catalog>, operation: Path<OperationId>) -> Response {
    match state.up() {
        Ok(mut facts) => {
            facts.finalizers.remove(&operation);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => response,
    }
}

/// The pin that a plan gets for a host that has not moved.
pub fn pin(host: u128) -> kernel::Sha256Digest {
    pin_inputs(plans::uid(host), false).restricted_to(&[]).digest()
}
