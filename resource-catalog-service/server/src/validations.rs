//! The command boundary: "are these still as the plan saw them?", for many resources in one transaction.
//!
//! All of them are seen at one moment. Finalizers are set only when everything holds, in a transaction that holds the
//! rows from the look to the commit, and bump no version.

use std::collections::BTreeSet;

use api_kit::{Caller, FieldError, Problem, Tell};
use kernel::VersionRequirement;
use resource_catalog_api as api;
use resource_catalog_domain::validation::{Expectation, Unmet, unmet};
use resource_catalog_domain::{CapabilityFilter, Resource};

use crate::catalog::Catalog;
use crate::store::{StoreError, finalizers, resource};
use crate::{clock, wire};

/// Most resources in one request.
const MAX_RESOURCES: usize = 1_000;

/// Judges every resource of `request`.
///
/// # Errors
/// 422 when the request makes no sense; what does not hold is an answer, not an error.
pub async fn validate(
    catalog: &Catalog,
    caller: &Caller,
    request: api::ValidationRequest,
) -> Result<api::ValidationResponse, Problem> {
    let expectations = expectations(&request)?;
    let organization = caller.organization;
    let transaction = catalog
        .database()
        .begin_hot(organization)
        .await
        .map_err(StoreError::from)?;
    let ids: Vec<&str> = request.resources.iter().map(|item| item.resource_id.as_str()).collect();
    let found = resource::see(&transaction, organization, &ids, request.set_finalizers).await?;
    let results: Vec<api::ValidationResult> = request
        .resources
        .iter()
        .zip(&expectations)
        .map(|(item, expected)| judge(item, expected, found.iter().find(|r| r.id == item.resource_id)))
        .collect();
    let valid = results.iter().all(|result| result.valid);
    let setting = request.operation_id.filter(|_| request.set_finalizers && valid);
    if let Some(operation) = setting {
        let uids: Vec<_> = found.iter().map(|r| r.uid).collect();
        finalizers::set(&transaction, organization, operation, &uids, clock::now()).await?;
        let tell = Tell::accepted().on(format!("operation/{operation}"));
        let recorded = caller.act.record(&transaction, tell).await;
        recorded.map_err(StoreError::from)?;
        failpoints::hit("catalog.validation.before_commit");
        transaction.commit().await.map_err(StoreError::from)?;
        failpoints::hit("catalog.validation.after_commit");
    } else {
        transaction.rollback().await.map_err(StoreError::from)?;
    }
    Ok(api::ValidationResponse {
        valid,
        finalizers_set: setting.is_some(),
        resources: results,
    })
}

fn expectations(request: &api::ValidationRequest) -> Result<Vec<Expectation>, Problem> {
    let mut errors = Vec::new();
    let count = request.resources.len();
    if count == 0 || count > MAX_RESOURCES {
        let detail = format!("{count} resources; 1 to {MAX_RESOURCES} are taken");
        errors.push(FieldError::new("/resources", "invalid", detail));
    }
    if request.set_finalizers && request.operation_id.is_none() {
        let detail = "finalizers are set for an operation";
        errors.push(FieldError::new("/operation_id", "missing_field", detail));
    }
    let mut seen = BTreeSet::new();
    let mut expectations = Vec::new();
    for (index, item) in request.resources.iter().enumerate().take(MAX_RESOURCES) {
        if !seen.insert(&item.resource_id) {
            let detail = format!("{} is named twice", item.resource_id);
            errors.push(FieldError::new(format!("/resources/{index}"), "duplicate", detail));
        }
        let mut capabilities = Vec::new();
        for (at, wanted) in item.capabilities.iter().enumerate() {
            let version: Result<Option<VersionRequirement>, _> = wanted.version.as_deref().map(str::parse).transpose();
            match version {
                Ok(version) => capabilities.push(CapabilityFilter {
                    name: wanted.capability.clone(),
                    version,
                }),
                Err(error) => errors.push(FieldError::new(
                    format!("/resources/{index}/capabilities/{at}/version"),
                    "invalid_version_range",
                    error.to_string(),
                )),
            }
        }
        expectations.push(Expectation {
            uid: item.uid,
            version: item.expected_version,
            lifecycle_in: item.lifecycle_in.clone(),
            capabilities,
        });
    }
    if errors.is_empty() {
        Ok(expectations)
    } else {
        Err(Problem::invalid(errors))
    }
}

fn judge(item: &api::ValidationItem, expected: &Expectation, found: Option<&Resource>) -> api::ValidationResult {
    let mut faults: Vec<api::Fault> = unmet(expected, found).into_iter().map(fault).collect();
    let current = found.map(|resource| {
        let sent = wire::resource::resource(resource);
        let pin_inputs = api::PinInputs::of(&sent);
        if let Some(pin) = item.expected_pin {
            let now = match &item.pin_capabilities {
                Some(wanted) => pin_inputs.clone().restricted_to(wanted).digest(),
                None => sent.pin,
            };
            if now != pin {
                faults.push(api::Fault {
                    code: api::FaultCode::PinMoved,
                    detail: format!(
                        "what the plan read of {} has changed: its pin is {}, not {}",
                        resource.id,
                        now.short(),
                        pin.short()
                    ),
                });
            }
        }
        api::ValidatedResource {
            uid: resource.uid,
            version: resource.version,
            pin: sent.pin,
            pin_inputs,
            environment: sent.environment,
        }
    });
    api::ValidationResult {
        resource_id: item.resource_id.clone(),
        valid: faults.is_empty(),
        faults,
        current,
    }
}

fn fault(unmet: Unmet) -> api::Fault {
    use api::FaultCode as Code;
    let (code, detail) = match unmet {
        Unmet::NotFound => (Code::NotFound, "there is no such resource".to_owned()),
        Unmet::OtherIncarnation { current } => (
            Code::OtherIncarnation,
            format!("it is another incarnation now: uid {current}"),
        ),
        Unmet::VersionMoved { expected, current } => (
            Code::VersionMoved,
            format!("it is at version {current}, not {expected}"),
        ),
        Unmet::LifecycleNotAllowed { current } => (Code::LifecycleNotAllowed, format!("it is {}", current.as_str())),
        Unmet::CapabilityMissing(wanted) => (Code::CapabilityMissing, format!("it does not provide {}", wanted.name)),
        Unmet::CapabilityVersionMismatch(wanted, stated) => {
            let range = wanted.version.map(|v| v.to_string()).unwrap_or_default();
            let stated = if stated.is_empty() {
                "without a version".to_owned()
            } else {
                format!("in version {}", stated.join(", "))
            };
            (
                Code::CapabilityVersionMismatch,
                format!("it provides {} {stated}; {range} is asked for", wanted.name),
            )
        }
    };
    api::Fault { code, detail }
}
