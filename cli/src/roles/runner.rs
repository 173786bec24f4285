use crate::{args::Runner, error::CliError, exit::Exit, printer::Printer};
pub async fn run(_: &Runner, _: Printer) -> Result<Exit, CliError> {
    Ok(Exit::Success)
}
