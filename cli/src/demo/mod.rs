use crate::{args::Demo, error::CliError, exit::Exit, printer::Printer};
pub async fn run(_: &Demo, _: Printer) -> Result<Exit, CliError> {
    Ok(Exit::Success)
}
