use super::find;
use crate::args::Drain;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::plural;

pub async fn run(what: &Drain, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let runner = find::runner(&what.runner, platform).await?;
    let after = platform
        .execution
        .drain(runner.runner_id, runner.version, !what.end)
        .await?;
    printer.value(&after, || {
        if what.end {
            format!("runner {} is given work again", after.name)
        } else {
            let left = plural(after.in_use as usize, "attempt");
            format!("runner {} is given no further work; it still has {left}", after.name)
        }
    });
    Ok(Exit::Success)
}
