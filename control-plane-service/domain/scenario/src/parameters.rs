//! Values for a template's parameters: defaults filled in, all faults at once.

use kernel::canonical;
use serde_json::{Map, Value};

use crate::fault::suggestion;
use crate::secrets;
use crate::template::Template;

/// One fault in given values. `pointer` is a JSON Pointer into them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueFault {
    pub pointer: String,
    pub code: &'static str,
    pub detail: String,
}

impl Template {
    /// The values with defaults filled in.
    ///
    /// # Errors
    /// Every unknown, missing or unfit value.
    pub fn complete(&self, given: &Map<String, Value>) -> Result<Map<String, Value>, Vec<ValueFault>> {
        let mut faults = Vec::new();
        let mut values = Map::new();
        for name in given.keys().filter(|name| !self.parameters.contains_key(*name)) {
            faults.push(ValueFault {
                pointer: pointer(name),
                code: "unknown_parameter",
                detail: format!(
                    "there is no parameter `{name}`; {}",
                    suggestion(name, self.parameters.keys().map(String::as_str))
                ),
            });
        }
        for (name, parameter) in &self.parameters {
            let Some(value) = given.get(name).or(parameter.default.as_ref()) else {
                faults.push(ValueFault {
                    pointer: pointer(name),
                    code: "missing_parameter",
                    detail: format!("the parameter `{name}` has no default and must be given"),
                });
                continue;
            };
            for error in parameter.validator.iter_errors(value) {
                faults.push(ValueFault {
                    pointer: format!("{}{}", pointer(name), error.instance_path().as_str()),
                    code: "invalid_parameter",
                    detail: error.to_string(),
                });
            }
            if secrets::value_holds_private_key(value) {
                faults.push(ValueFault {
                    pointer: pointer(name),
                    code: "secret_value",
                    detail: "this is a private key; give a reference instead".to_owned(),
                });
            }
            if let Err(error) = canonical::check(value) {
                faults.push(ValueFault {
                    pointer: pointer(name),
                    code: "invalid_parameter",
                    detail: error.to_string(),
                });
            }
            values.insert(name.clone(), value.clone());
        }
        if faults.is_empty() { Ok(values) } else { Err(faults) }
    }
}

fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
