//! Parameters of ssh jobs: `{commands | script | script_file, pty, stop_on_failure, exit_rule,
//! parallel, checks}`.

use super::PARAMETERS;
use super::check::{self, Check};
use super::command::{self, Command, CommandText, CommandUse};
use super::content_path::ContentPath;
use super::fields::Fields;
use crate::fault::{FaultCode, below};

/// What runs on every target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SshWork {
    /// In order.
    Commands(Vec<Command>),
    /// A script's text; its first line may name the interpreter, else `/bin/sh`.
    Script { text: String, arguments: Vec<String> },
    /// A script of the bundle.
    ScriptFile { path: ContentPath, arguments: Vec<String> },
}

/// Which exit codes decide when there are several commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExitRule {
    /// One failed command fails the target.
    #[default]
    All,
    /// Only the last command's exit code counts; said by the author on purpose.
    Last,
}

/// Commands or a script, on every target of the JobSpec.
#[derive(Debug, Clone, PartialEq)]
pub struct SshJob {
    pub work: SshWork,
    pub pty: bool,
    /// The first failed command is the last one that runs (on that target).
    pub stop_on_failure: bool,
    pub exit_rule: ExitRule,
    /// Targets at once; the runner's own default when absent.
    pub parallel: Option<u16>,
    pub checks: Vec<Check>,
}

impl SshJob {
    pub(super) fn commands(&self) -> Vec<CommandUse> {
        let script = |field: &str| CommandUse {
            pointer: format!("{PARAMETERS}/{field}"),
            command: CommandText::Script,
        };
        match &self.work {
            SshWork::Commands(commands) => commands
                .iter()
                .enumerate()
                .map(|(index, command)| command.used_at(format!("{PARAMETERS}/commands/{index}")))
                .collect(),
            SshWork::Script { .. } => vec![script("script")],
            SshWork::ScriptFile { .. } => vec![script("script_file")],
        }
    }
}

pub(super) fn read(fields: &mut Fields<'_>) -> Option<SshJob> {
    let work = read_work(fields);
    let pty = fields.flag("pty", false);
    let exit_rule = fields.parsed("exit_rule", |word| match word {
        "all" => Ok(ExitRule::All),
        "last" => Ok(ExitRule::Last),
        _ => Err("all or last"),
    });
    let exit_rule = exit_rule.unwrap_or_default();
    let stop_on_failure = fields.flag("stop_on_failure", exit_rule == ExitRule::All);
    let parallel = fields.number("parallel", 1..=1000);
    let checks = check::read_list(fields);
    Some(SshJob {
        work: work?,
        pty,
        stop_on_failure,
        exit_rule,
        parallel: parallel.and_then(|parallel| u16::try_from(parallel).ok()),
        checks,
    })
}

fn read_work(fields: &mut Fields<'_>) -> Option<SshWork> {
    let commands = read_commands(fields);
    let script = fields.text("script").map(str::to_owned);
    let path = fields.parsed("script_file", ContentPath::parse);
    let arguments = fields.words("arguments", 256);
    let given = [
        fields.raw("commands").is_some(),
        fields.raw("script").is_some(),
        fields.raw("script_file").is_some(),
    ];
    if given.iter().filter(|given| **given).count() != 1 {
        let detail = "exactly one of commands, script and script_file is expected";
        fields.fault_here(FaultCode::Exclusive, detail);
        return None;
    }
    if !arguments.is_empty() && given[0] {
        fields.fault(
            "arguments",
            FaultCode::Exclusive,
            "arguments go with script or script_file",
        );
    }
    match (commands, script, path) {
        (Some(commands), _, _) => Some(SshWork::Commands(commands)),
        (_, Some(text), _) => Some(SshWork::Script { text, arguments }),
        (_, _, Some(path)) => Some(SshWork::ScriptFile { path, arguments }),
        _ => None,
    }
}

fn read_commands(fields: &mut Fields<'_>) -> Option<Vec<Command>> {
    fields.raw("commands")?;
    let list = fields.list("commands", 256);
    if list.is_empty() {
        fields.fault("commands", FaultCode::InvalidValue, "at least one command");
        return None;
    }
    let mut faults = Vec::new();
    let pointer = fields.at("commands");
    let commands: Vec<_> = list
        .iter()
        .enumerate()
        .filter_map(|(index, value)| command::read(value, &below(&pointer, &index.to_string()), &mut faults))
        .collect();
    let whole = faults.is_empty();
    fields.absorb(faults);
    whole.then_some(commands)
}
