use crate::{args::ConfigCommand, error::CliError, exit::Exit, printer::Printer};
pub fn run(_: &ConfigCommand, _: Printer) -> Result<Exit, CliError> {
    Ok(Exit::Success)
}
