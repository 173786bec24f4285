use crate::{args::Serve, error::CliError, exit::Exit, printer::Printer};
pub async fn run(_: &Serve, _: Printer) -> Result<Exit, CliError> {
    Ok(Exit::Success)
}
