//! Parameters of ansible jobs:
//! `{playbook, extra_vars, check_mode, diff, tags, skip_tags, verbosity, forks, checks}`.

use serde_json::{Map, Value};

use super::PARAMETERS;
use super::check::{self, Check};
use super::command::{CommandText, CommandUse};
use super::content_path::ContentPath;
use super::fields::Fields;

/// A playbook of the bundle, run on the JobSpec's targets.
#[derive(Debug, Clone, PartialEq)]
pub struct AnsibleJob {
    pub playbook: ContentPath,
    pub extra_vars: Map<String, Value>,
    /// Say what would change, change nothing.
    pub check_mode: bool,
    pub diff: bool,
    pub tags: Vec<String>,
    pub skip_tags: Vec<String>,
    /// 0 to 4: the number of `-v`.
    pub verbosity: u8,
    /// Hosts at once; the tool's own default when absent.
    pub forks: Option<u16>,
    /// Evaluated after the play, for the evidence of the job's contract.
    pub checks: Vec<Check>,
}

impl AnsibleJob {
    pub(super) fn commands(&self) -> Vec<CommandUse> {
        vec![CommandUse {
            pointer: format!("{PARAMETERS}/playbook"),
            command: CommandText::Argv(vec!["ansible-playbook".into(), self.playbook.as_str().into()]),
        }]
    }
}

pub(super) fn read(fields: &mut Fields<'_>) -> Option<AnsibleJob> {
    fields.require("playbook");
    let playbook = fields.parsed("playbook", ContentPath::parse);
    let extra_vars = fields.object("extra_vars").cloned().unwrap_or_default();
    let check_mode = fields.flag("check_mode", false);
    let diff = fields.flag("diff", false);
    let tags = fields.texts("tags", 256);
    let skip_tags = fields.texts("skip_tags", 256);
    let verbosity = fields.number("verbosity", 0..=4).unwrap_or(0);
    let forks = fields.number("forks", 1..=1000);
    let checks = check::read_list(fields);
    Some(AnsibleJob {
        playbook: playbook?,
        extra_vars,
        check_mode,
        diff,
        tags,
        skip_tags,
        verbosity: u8::try_from(verbosity).unwrap_or(0),
        forks: forks.and_then(|forks| u16::try_from(forks).ok()),
        checks,
    })
}
