use chrono::Utc;
use contracts::{EvidenceRef, EvidenceResult, EvidenceType};
use kernel::{DottedName, ResourceId, Sha256Digest};
use resource_catalog_api::ObserveCapability;

use crate::args::Observe;
use crate::commands::ask;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;

pub async fn run(what: &Observe, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let resource_id: ResourceId = what
        .resource
        .parse()
        .map_err(|e: kernel::ResourceIdError| CliError::usage(e.to_string()))?;
    let capability: DottedName = what
        .capability
        .parse()
        .map_err(|e: kernel::NameError| CliError::usage(e.to_string()))?;
    let sha256 = match &what.seen {
        None => None,
        Some(path) => {
            let bytes =
                std::fs::read(path).map_err(|e| CliError::usage(format!("{} cannot be read: {e}", path.display())))?;
            Some(Sha256Digest::of(&bytes))
        }
    };
    let evidence = EvidenceRef {
        id: uuid::Uuid::now_v7(),
        evidence_type: EvidenceType::CommandCheck,
        capability: capability.clone(),
        result: EvidenceResult::Passed,
        source_ref: what.source.clone(),
        observed_at: Utc::now(),
        name: Some("observed".to_owned()),
        resource_id: Some(resource_id.clone()),
        attempt_id: None,
        sha256,
    };
    let seen = ObserveCapability {
        attributes: ask::assignments(&what.set)?,
        evidence: vec![evidence],
    };
    let resource = platform
        .catalog
        .observe_capability(&resource_id, &capability, &seen)
        .await?;
    printer.value(&resource, || {
        format!("{resource_id} provides {capability}, at version {}", resource.version)
    });
    Ok(Exit::Success)
}
