use crate::args::ConfigCommand;
use crate::config;
use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;

pub fn run(what: &ConfigCommand, printer: Printer) -> Result<Exit, CliError> {
    let ConfigCommand::Check { role, config } = what;
    config::role_of(role, config)?;
    printer.value(&serde_json::json!({"valid": true, "role": role}), || {
        format!("{} is a usable configuration of {role}", config.display())
    });
    Ok(Exit::Success)
}
