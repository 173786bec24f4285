use control_plane_api::{CreateOperation, Overlap};

use crate::args::Run;
use crate::commands::{ask, watch};
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;

pub async fn run(what: &Run, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let request = ask::request(&what.ask)?;
    let view = super::plan::preview(&request, what.ask.wait_for.as_deref(), platform).await?;
    let Some(digest) = view.digest.filter(|_| view.satisfiable) else {
        printer.value(&view, || super::plan::text(&view));
        return Err(CliError::new(
            Exit::Refused,
            "nothing was started: the requirements cannot be met",
        ));
    };
    if let Some(expected) = &what.expect_plan
        && *expected != digest.to_hex()
    {
        return Err(CliError::new(
            Exit::Conflict,
            format!("the plan is now {digest}, not {expected}; nothing was started"),
        )
        .hint("look at it with 'platform plan' and start it with its digest"));
    }
    let create = CreateOperation {
        plan_id: Some(view.id),
        expected_digest: Some(digest),
        plan: None,
        on_overlap: if what.no_queue { Overlap::Refuse } else { Overlap::Queue },
        reason: what.reason.clone().unwrap_or_default(),
        labels: std::collections::BTreeMap::new(),
    };
    let operation = platform
        .control
        .create_operation(&create, &uuid::Uuid::now_v7().to_string())
        .await?;
    let id = operation.summary.id;
    printer.say(format!("operation {id}  plan {}", digest.short()));
    if what.no_wait {
        if printer.is_json() {
            printer.value(&operation, String::new);
        }
        return Ok(Exit::Success);
    }
    watch::follow(id, what.until_gate, platform, printer).await
}
