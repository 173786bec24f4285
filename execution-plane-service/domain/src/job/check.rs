//! Checks: each looks at one thing and yields one piece of evidence (one a target, when it looks at
//! several).
//!
//! ```json
//! {"name": "http_ok", "capability": "web.http", "type": "api_check",
//!  "url": "http://127.0.0.11:8080/", "expect": {"status": 200, "body_contains": "hello"},
//!  "resource_id": "node/web-1", "retry_until_seconds": 30, "interval_seconds": 1}
//! ```
//! Further fields by `type`:
//! - `command_check`: `target?`, `argv | command`, `expect {exit_code, stdout_contains, stdout_matches}`
//! - `api_check`: `url`, `method?`, `headers?`, `body?`, `timeout_seconds?`,
//!   `expect {status, body_contains, body_matches, json_path: [{path, equals}]}`, `tls {min_days_valid, server_name, ca_pem}`
//! - `log_check`: `target?`, `path`, `matches`, `absent?`, `tail_bytes?`
//! - `value_check`: `value`, `equals`: compared by the runner itself, without a child process

use contracts::EvidenceType;
use kernel::{DottedName, ResourceId};
use serde_json::Value;

use super::PARAMETERS;
use super::check_kinds::{self, ApiCheck, CheckTarget, CommandCheck, LogCheck, ValueCheck};
use super::command::CommandUse;
use super::fields::Fields;
use crate::fault::{Fault, FaultCode, below};

/// Most checks of one job.
const MAX_CHECKS: usize = 256;

/// One check.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Matched against `output_contract.evidence`.
    pub name: String,
    /// What the evidence is about.
    pub capability: DottedName,
    /// Whom the evidence is about, when the check's target does not say.
    pub resource_id: Option<ResourceId>,
    /// Repeated until it passes or so long; 0 looks once.
    pub retry_until_seconds: u32,
    pub interval_seconds: u32,
    pub kind: CheckKind,
}

/// How a check looks.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckKind {
    Command(CommandCheck),
    Api(ApiCheck),
    Log(LogCheck),
    Value(ValueCheck),
}

impl Check {
    /// The evidence type that it yields. A value check is a command check whose command is a
    /// comparison.
    #[must_use]
    pub const fn evidence_type(&self) -> EvidenceType {
        match self.kind {
            CheckKind::Command(_) | CheckKind::Value(_) => EvidenceType::CommandCheck,
            CheckKind::Api(_) => EvidenceType::ApiCheck,
            CheckKind::Log(_) => EvidenceType::LogCheck,
        }
    }

    /// Where it looks.
    #[must_use]
    pub const fn target(&self) -> &CheckTarget {
        match &self.kind {
            CheckKind::Command(check) => &check.target,
            CheckKind::Log(check) => &check.target,
            CheckKind::Api(_) | CheckKind::Value(_) => &CheckTarget::Runner,
        }
    }

    /// Whether it logs in to every target.
    #[must_use]
    pub const fn logs_in_to_all(&self) -> bool {
        matches!(self.target(), CheckTarget::Every)
    }
}

pub(super) fn command_of((index, check): (usize, &Check)) -> Option<CommandUse> {
    let CheckKind::Command(command) = &check.kind else {
        return None;
    };
    Some(command.command.used_at(format!("{PARAMETERS}/checks/{index}")))
}

/// Reads the field `checks`.
pub(super) fn read_list(fields: &mut Fields<'_>) -> Vec<Check> {
    let list = fields.list("checks", MAX_CHECKS);
    let pointer = fields.at("checks");
    let mut faults = Vec::new();
    let mut checks: Vec<Check> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let pointer = below(&pointer, &index.to_string());
        let Some(check) = read(value, &pointer, &mut faults) else {
            continue;
        };
        if checks.iter().any(|other| other.name == check.name) {
            let detail = format!("two checks are called {:?}", check.name);
            faults.push(Fault::new(below(&pointer, "name"), FaultCode::Duplicate, detail));
        }
        checks.push(check);
    }
    fields.absorb(faults);
    checks
}

fn read(value: &Value, pointer: &str, faults: &mut Vec<Fault>) -> Option<Check> {
    let mut fields = Fields::of(value, pointer, faults)?;
    let name = fields.required_text("name").map(str::to_owned);
    fields.require("capability");
    let capability = fields.parsed("capability", str::parse);
    let resource_id = fields.parsed("resource_id", str::parse);
    let retry_until = fields.number("retry_until_seconds", 0..=86_400).unwrap_or(0);
    let interval = fields.number("interval_seconds", 1..=3600).unwrap_or(1);
    let kind = match fields.required_text("type") {
        Some("command_check") => check_kinds::command(&mut fields).map(CheckKind::Command),
        Some("api_check") => check_kinds::api(&mut fields).map(CheckKind::Api),
        Some("log_check") => check_kinds::log(&mut fields).map(CheckKind::Log),
        Some("value_check") => check_kinds::value(&mut fields).map(CheckKind::Value),
        Some(other) => {
            let detail = format!("{other:?} is none of command_check, api_check, log_check, value_check");
            faults.push(Fault::new(below(pointer, "type"), FaultCode::InvalidValue, detail));
            return None;
        }
        None => {
            faults.extend(
                fields
                    .finish()
                    .into_iter()
                    .filter(|f| f.code != FaultCode::UnknownField),
            );
            return None;
        }
    };
    faults.extend(fields.finish());
    Some(Check {
        name: name?,
        capability: capability?,
        resource_id,
        retry_until_seconds: u32::try_from(retry_until).unwrap_or(u32::MAX),
        interval_seconds: u32::try_from(interval).unwrap_or(1),
        kind: kind?,
    })
}
