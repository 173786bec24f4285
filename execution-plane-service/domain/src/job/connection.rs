//! How a target is reached over SSH: the `connection` of a target resource.
//!
//! `{address, port?, user, host_keys: ["ssh-ed25519 AAAA..."]}`. Fields beyond these are other
//! tools' and are left alone. Host keys are never learnt on the way: without one, no login.

use contracts::TargetResource;
use serde_json::Value;

use super::fields::Fields;
use crate::fault::{Fault, FaultCode};

/// Address, login and identity of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshConnection {
    pub address: String,
    pub port: u16,
    pub user: String,
    /// Public keys in OpenSSH form, without host name and comment.
    pub host_keys: Vec<String>,
}

impl SshConnection {
    /// Reads the connection of `target`; pointers start at `pointer`, the target's own place.
    ///
    /// # Errors
    /// Every fault.
    pub fn of(target: &TargetResource, pointer: &str) -> Result<Self, Vec<Fault>> {
        let Some(connection) = &target.connection else {
            let detail = format!("{} has no connection data; the job logs in to it", target.resource_id);
            return Err(vec![Fault::new(
                format!("{pointer}/connection"),
                FaultCode::Required,
                detail,
            )]);
        };
        let mut fields = Fields::new(connection, format!("{pointer}/connection"));
        let address = word(&mut fields, "address");
        let user = word(&mut fields, "user");
        let port = fields.number("port", 1..=65_535).unwrap_or(22);
        let host_keys = host_keys(&mut fields);
        let faults: Vec<_> = fields
            .finish()
            .into_iter()
            .filter(|fault| fault.code != FaultCode::UnknownField)
            .collect();
        match (address, user) {
            (Some(address), Some(user)) if faults.is_empty() => Ok(Self {
                address,
                port: u16::try_from(port).unwrap_or(22),
                user,
                host_keys,
            }),
            _ => Err(faults),
        }
    }
}

/// A name that can neither be read as an option nor break a configuration line.
fn word(fields: &mut Fields<'_>, field: &'static str) -> Option<String> {
    let text = fields.required_text(field)?;
    let good = !text.starts_with('-')
        && text.len() <= 255
        && text
            .chars()
            .all(|c| !c.is_whitespace() && !c.is_control() && !"\"'\\".contains(c));
    if !good {
        let detail = "a plain name without blanks and quotes, not starting with '-', is expected";
        fields.fault(field, FaultCode::InvalidValue, detail);
        return None;
    }
    Some(text.to_owned())
}

fn host_keys(fields: &mut Fields<'_>) -> Vec<String> {
    let keys = match fields.raw("host_keys") {
        Some(Value::Array(_)) => fields.texts("host_keys", 16),
        Some(_) => {
            fields.fault("host_keys", FaultCode::WrongType, "a list of public keys is expected");
            return Vec::new();
        }
        None => Vec::new(),
    };
    if keys.is_empty() {
        let detail = "at least one host key is needed: a host is never accepted unseen";
        fields.fault("host_keys", FaultCode::Required, detail);
    }
    let is_key = |key: &String| {
        let mut words = key.split(' ');
        matches!((words.next(), words.next()), (Some(kind), Some(data)) if !kind.is_empty() && !data.is_empty())
            && !key.contains(['\n', '\r', '\0'])
    };
    if !keys.iter().all(is_key) {
        let detail = "each host key is one line: TYPE BASE64";
        fields.fault("host_keys", FaultCode::InvalidValue, detail);
    }
    keys
}
