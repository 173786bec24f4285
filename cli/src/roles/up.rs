use crate::{args::Up, error::CliError, exit::Exit, printer::Printer};
pub async fn run(_: &Up, _: Printer) -> Result<Exit, CliError> {
    Ok(Exit::Success)
}
