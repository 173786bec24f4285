use kernel::{DottedName, ResourceId};

use crate::args::Withdraw;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;

pub async fn run(what: &Withdraw, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let resource_id: ResourceId = what
        .resource
        .parse()
        .map_err(|error: kernel::ResourceIdError| CliError::usage(error.to_string()))?;
    let capability: DottedName = what
        .capability
        .parse()
        .map_err(|error: kernel::NameError| CliError::usage(error.to_string()))?;
    let before = platform.catalog.resource(&resource_id).await?;
    let provided = before
        .provided_capabilities
        .iter()
        .any(|one| one.capability == capability);
    if !provided {
        return Err(
            CliError::new(Exit::NotFound, format!("{resource_id} does not provide {capability}"))
                .hint(format!("'platform get resources {resource_id}' shows what it provides")),
        );
    }
    let after = platform.catalog.withdraw_capability(&resource_id, &capability).await?;
    printer.value(&after, || {
        format!(
            "{resource_id} no longer provides {capability}, at version {}",
            after.version
        )
    });
    Ok(Exit::Success)
}
