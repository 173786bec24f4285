//! What each kind of check expects, and the pure judgement whether an observation meets it.

use std::collections::BTreeMap;

use kernel::ResourceId;
use serde_json::Value;

use super::command::{self, Command};
use super::fields::Fields;
use super::json_path::JsonPath;
use super::pattern::Pattern;
use crate::fault::{FaultCode, below};

/// Where a check looks. In JSON: absent is the runner, `"*"` every target, else a resource id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckTarget {
    Runner,
    Every,
    One(ResourceId),
}

/// A command's exit code and output.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandCheck {
    pub target: CheckTarget,
    pub command: Command,
    pub expect: CommandExpectation,
}

/// All that is stated must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandExpectation {
    /// 0 when not stated.
    pub exit_code: i32,
    pub stdout_contains: Option<String>,
    pub stdout_matches: Option<Pattern>,
}

/// An HTTP request of the runner's.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiCheck {
    pub url: String,
    pub method: String,
    pub headers: BTreeMap<String, String>,
    pub body: Option<String>,
    pub timeout_seconds: u32,
    pub expect: ApiExpectation,
    pub tls: Option<TlsExpectation>,
}

/// All that is stated must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiExpectation {
    /// One of these; 200 when not stated.
    pub status: Vec<u16>,
    pub body_contains: Option<String>,
    pub body_matches: Option<Pattern>,
    pub json_path: Vec<JsonExpectation>,
}

/// The value at a path: equal to `equals`, or only present.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonExpectation {
    pub path: JsonPath,
    pub equals: Option<Value>,
}

/// What the server's certificate must meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsExpectation {
    pub min_days_valid: u32,
    /// Whose certificate is expected, when not the URL's host.
    pub server_name: Option<String>,
    /// Authorities in PEM, which alone may vouch for the server; those of the runner's machine when absent.
    pub ca_pem: Option<String>,
}

/// A file that must (or must not) have a line.
#[derive(Debug, Clone, PartialEq)]
pub struct LogCheck {
    pub target: CheckTarget,
    /// Absolute.
    pub path: String,
    pub matches: Pattern,
    /// Passes when nothing matches.
    pub absent: bool,
    /// Only the end of the file is read.
    pub tail_bytes: u64,
}

/// A comparison of two values of the JobSpec.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueCheck {
    pub value: Value,
    pub equals: Value,
}

impl CommandExpectation {
    /// `Err` says, for people, what did not hold.
    ///
    /// # Errors
    /// The first expectation that does not hold.
    pub fn judge(&self, exit_code: i32, stdout: &[u8]) -> Result<(), String> {
        if exit_code != self.exit_code {
            return Err(format!("exit code {exit_code}, expected {}", self.exit_code));
        }
        contains(stdout, self.stdout_contains.as_deref(), "stdout")?;
        matches(stdout, self.stdout_matches.as_ref(), "stdout")
    }
}

impl ApiExpectation {
    /// `Err` says, for people, what did not hold.
    ///
    /// # Errors
    /// The first expectation that does not hold.
    pub fn judge(&self, status: u16, body: &[u8]) -> Result<(), String> {
        if !self.status.contains(&status) {
            return Err(format!("status {status}, expected {:?}", self.status));
        }
        contains(body, self.body_contains.as_deref(), "the body")?;
        matches(body, self.body_matches.as_ref(), "the body")?;
        if self.json_path.is_empty() {
            return Ok(());
        }
        let document: Value = serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
        self.json_path.iter().try_for_each(|expected| expected.judge(&document))
    }
}

impl JsonExpectation {
    fn judge(&self, document: &Value) -> Result<(), String> {
        match (self.path.find(document), &self.equals) {
            (None, _) => Err(format!("nothing at {}", self.path.as_str())),
            (Some(found), Some(expected)) if found != expected => {
                Err(format!("{} is {found}, expected {expected}", self.path.as_str()))
            }
            _ => Ok(()),
        }
    }
}

impl LogCheck {
    /// Judges the end of the file.
    ///
    /// # Errors
    /// What did not hold.
    pub fn judge(&self, tail: &[u8]) -> Result<(), String> {
        match (self.matches.is_match(tail), self.absent) {
            (true, false) | (false, true) => Ok(()),
            (false, false) => Err(format!("nothing matches {}", self.matches.as_str())),
            (true, true) => Err(format!("something matches {}", self.matches.as_str())),
        }
    }
}

impl ValueCheck {
    /// Compares.
    ///
    /// # Errors
    /// What did not hold.
    pub fn judge(&self) -> Result<(), String> {
        if self.value == self.equals {
            return Ok(());
        }
        Err(format!("{} is not {}", self.value, self.equals))
    }
}

fn contains(bytes: &[u8], needle: Option<&str>, what: &str) -> Result<(), String> {
    match needle {
        Some(needle) if !bytes.windows(needle.len()).any(|window| window == needle.as_bytes()) => {
            Err(format!("{what} does not contain {needle:?}"))
        }
        _ => Ok(()),
    }
}

fn matches(bytes: &[u8], pattern: Option<&Pattern>, what: &str) -> Result<(), String> {
    match pattern {
        Some(pattern) if !pattern.is_match(bytes) => Err(format!("{what} does not match {}", pattern.as_str())),
        _ => Ok(()),
    }
}

fn target(fields: &mut Fields<'_>) -> CheckTarget {
    let read = |text: &str| match text {
        "*" => Ok(CheckTarget::Every),
        id => id.parse().map(CheckTarget::One),
    };
    fields.parsed("target", read).unwrap_or(CheckTarget::Runner)
}

/// The needle of a "contains"; empty ones prove nothing and are refused.
fn needle(fields: &mut Fields<'_>, field: &'static str) -> Option<String> {
    let needle = fields.text(field)?;
    if needle.is_empty() {
        fields.fault(field, FaultCode::InvalidValue, "must not be empty");
        return None;
    }
    Some(needle.to_owned())
}

pub(super) fn command(fields: &mut Fields<'_>) -> Option<CommandCheck> {
    let target = target(fields);
    let (argv, line) = (fields.raw("argv"), fields.raw("command"));
    let command = match (argv, line) {
        (Some(value), None) if value.is_array() => read_command(fields, "argv", value),
        (None, Some(value)) if value.is_string() => read_command(fields, "command", value),
        _ => {
            let detail = "exactly one of argv (a list of words) and command (a line) is expected";
            fields.fault_here(FaultCode::Exclusive, detail);
            None
        }
    };
    let expect = command_expectation(fields);
    Some(CommandCheck {
        target,
        command: command?,
        expect: expect?,
    })
}

fn read_command(fields: &mut Fields<'_>, field: &str, value: &Value) -> Option<Command> {
    let mut faults = Vec::new();
    let command = command::read(value, &fields.at(field), &mut faults);
    fields.absorb(faults);
    command
}

fn command_expectation(fields: &mut Fields<'_>) -> Option<CommandExpectation> {
    let empty = serde_json::Map::new();
    let pointer = fields.at("expect");
    let mut expect = Fields::new(fields.object("expect").unwrap_or(&empty), pointer);
    let exit_code = expect.number("exit_code", 0..=255).unwrap_or(0);
    let stdout_contains = needle(&mut expect, "stdout_contains");
    let stdout_matches = expect.parsed("stdout_matches", Pattern::parse);
    fields.absorb(expect.finish());
    Some(CommandExpectation {
        exit_code: i32::try_from(exit_code).unwrap_or(0),
        stdout_contains,
        stdout_matches,
    })
}

pub(super) fn api(fields: &mut Fields<'_>) -> Option<ApiCheck> {
    let url = fields.required_text("url").map(str::to_owned);
    if url
        .as_deref()
        .is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://"))
    {
        fields.fault("url", FaultCode::InvalidValue, "an http:// or https:// URL is expected");
    }
    let method = fields.parsed("method", |word| match word {
        "GET" | "HEAD" | "POST" | "PUT" | "OPTIONS" => Ok(word.to_owned()),
        _ => Err("GET, HEAD, POST, PUT or OPTIONS"),
    });
    let headers = headers(fields);
    let body = fields.text("body").map(str::to_owned);
    let timeout = fields.number("timeout_seconds", 1..=600).unwrap_or(10);
    let expect = api_expectation(fields);
    let tls = tls(fields);
    if tls.is_some() && url.as_deref().is_some_and(|url| url.starts_with("http://")) {
        fields.fault("tls", FaultCode::Exclusive, "tls goes with an https:// URL");
    }
    Some(ApiCheck {
        url: url?,
        method: method.unwrap_or_else(|| "GET".into()),
        headers,
        body,
        timeout_seconds: u32::try_from(timeout).unwrap_or(10),
        expect,
        tls,
    })
}

fn headers(fields: &mut Fields<'_>) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for (name, value) in fields.object("headers").into_iter().flatten() {
        match value.as_str() {
            Some(value) if !value.contains(['\r', '\n', '\0']) => {
                headers.insert(name.clone(), value.to_owned());
            }
            _ => {
                let field = below(&fields.at("headers"), name);
                fields.absorb(vec![crate::Fault::new(
                    field,
                    FaultCode::WrongType,
                    "a one-line string is expected",
                )]);
            }
        }
    }
    headers
}

fn api_expectation(fields: &mut Fields<'_>) -> ApiExpectation {
    let empty = serde_json::Map::new();
    let pointer = fields.at("expect");
    let mut expect = Fields::new(fields.object("expect").unwrap_or(&empty), pointer);
    let status = status(&mut expect);
    let body_contains = needle(&mut expect, "body_contains");
    let body_matches = expect.parsed("body_matches", Pattern::parse);
    let json_path = json_expectations(&mut expect);
    fields.absorb(expect.finish());
    ApiExpectation {
        status,
        body_contains,
        body_matches,
        json_path,
    }
}

fn status(expect: &mut Fields<'_>) -> Vec<u16> {
    let code = |value: &Value| {
        value
            .as_u64()
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (100..600).contains(code))
    };
    let read = match expect.raw("status") {
        None => return vec![200],
        Some(Value::Array(codes)) if !codes.is_empty() => codes.iter().map(code).collect(),
        Some(value) => code(value).map(|code| vec![code]),
    };
    read.unwrap_or_else(|| {
        let detail = "an HTTP status or a list of them is expected";
        expect.fault("status", FaultCode::InvalidValue, detail);
        Vec::new()
    })
}

fn json_expectations(expect: &mut Fields<'_>) -> Vec<JsonExpectation> {
    let mut expectations = Vec::new();
    let mut faults = Vec::new();
    let pointer = expect.at("json_path");
    for (index, value) in expect.list("json_path", 64).iter().enumerate() {
        let Some(mut entry) = Fields::of(value, &below(&pointer, &index.to_string()), &mut faults) else {
            continue;
        };
        entry.require("path");
        let path = entry.parsed("path", JsonPath::parse);
        let equals = entry.raw("equals").cloned();
        faults.extend(entry.finish());
        expectations.extend(path.map(|path| JsonExpectation { path, equals }));
    }
    expect.absorb(faults);
    expectations
}

fn tls(fields: &mut Fields<'_>) -> Option<TlsExpectation> {
    let pointer = fields.at("tls");
    let mut tls = Fields::new(fields.object("tls")?, pointer);
    let days = tls.number("min_days_valid", 0..=36_500).unwrap_or(0);
    let server_name = tls.text("server_name").map(str::to_owned);
    let ca_pem = tls.parsed("ca_pem", |text| match text.contains("-----BEGIN CERTIFICATE-----") {
        true => Ok(text.to_owned()),
        false => Err("certificates in PEM are expected"),
    });
    fields.absorb(tls.finish());
    Some(TlsExpectation {
        min_days_valid: u32::try_from(days).unwrap_or(0),
        server_name,
        ca_pem,
    })
}

pub(super) fn log(fields: &mut Fields<'_>) -> Option<LogCheck> {
    let target = target(fields);
    let path = fields.required_text("path").map(str::to_owned);
    if path
        .as_deref()
        .is_some_and(|path| !path.starts_with('/') || path.contains('\0'))
    {
        fields.fault("path", FaultCode::InvalidValue, "an absolute path is expected");
    }
    fields.require("matches");
    let matches = fields.parsed("matches", Pattern::parse);
    let absent = fields.flag("absent", false);
    let tail_bytes = fields.number("tail_bytes", 1..=16 * 1024 * 1024).unwrap_or(1024 * 1024);
    Some(LogCheck {
        target,
        path: path?,
        matches: matches?,
        absent,
        tail_bytes,
    })
}

pub(super) fn value(fields: &mut Fields<'_>) -> Option<ValueCheck> {
    fields.require("value");
    fields.require("equals");
    Some(ValueCheck {
        value: fields.raw("value")?.clone(),
        equals: fields.raw("equals")?.clone(),
    })
}
