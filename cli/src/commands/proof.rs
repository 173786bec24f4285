use crate::{args::ProofCommand, error::CliError, exit::Exit, platform::Platform, printer::Printer};
pub async fn run(_: &ProofCommand, _: impl Fn() -> Result<Platform, CliError>, _: Printer) -> Result<Exit, CliError> {
    Ok(Exit::Success)
}
