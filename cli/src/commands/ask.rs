//! What a person asks for: a scenario, an environment, parameters.

use control_plane_api::PlanRequest;
use serde_json::{Map, Value};

use crate::args::Ask;
use crate::error::CliError;

/// The request body of a preview, from the command line.
///
/// # Errors
/// Names what cannot be read.
pub fn request(ask: &Ask) -> Result<PlanRequest, CliError> {
    let (path, version) = match ask.scenario.split_once('@') {
        Some((path, version)) => (path, Some(version.to_owned())),
        None => (ask.scenario.as_str(), None),
    };
    let Some((pack, template)) = path.split_once('/') else {
        return Err(CliError::usage(format!("{:?} names no scenario", ask.scenario))
            .hint("a scenario is PACK/TEMPLATE or PACK/TEMPLATE@VERSION; 'platform get packs' lists them"));
    };
    Ok(PlanRequest {
        pack: pack.to_owned(),
        pack_version: version,
        template: template.to_owned(),
        environment: ask.environment.clone(),
        parameters: assignments(&ask.param)?,
    })
}

/// `NAME=VALUE` pairs; a value that is JSON is read as JSON, everything else as text.
///
/// # Errors
/// Every pair that is none, and every name given twice.
pub fn assignments(pairs: &[String]) -> Result<Map<String, Value>, CliError> {
    let mut error = CliError::usage("the parameters cannot be read; write NAME=VALUE");
    let mut values = Map::new();
    for pair in pairs {
        match pair.split_once('=') {
            Some((name, text)) if !name.is_empty() => {
                let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
                if values.insert(name.to_owned(), value).is_some() {
                    error = error.fault(pair.clone(), format!("{name} is given twice"));
                }
            }
            _ => error = error.fault(pair.clone(), "there is no NAME= in it"),
        }
    }
    if error.faults.is_empty() {
        Ok(values)
    } else {
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_json_where_they_are_json() {
        let pairs = ["a=1", "b=text", "c=\"1\"", "d=[1,2]", "e=", "f=a=b"].map(str::to_owned);
        let values = Value::Object(assignments(&pairs).unwrap());
        assert_eq!(
            values,
            json!({"a": 1, "b": "text", "c": "1", "d": [1, 2], "e": "", "f": "a=b"})
        );
    }

    #[test]
    fn every_bad_pair_is_named() {
        let pairs = ["a", "=b", "c=1", "c=2"].map(str::to_owned);
        assert_eq!(assignments(&pairs).unwrap_err().faults.len(), 3);
    }
}
