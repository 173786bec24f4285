//! Deferred expressions: CEL over what earlier nodes came to, as the domain asks for it.

use control_plane_operation::{ExpressionError, Expressions, NodeOutputs};
use control_plane_scenario::expression::{Expression, Scope};
use serde_json::{Map, Value};

/// Evaluates CEL within the limits of the scenario language.
#[derive(Debug, Clone, Copy, Default)]
pub struct CelExpressions;

impl Expressions for CelExpressions {
    fn evaluate(&self, expression: &str, outputs: &dyn NodeOutputs) -> Result<Value, ExpressionError> {
        let parsed = Expression::parse(expression).map_err(|error| ExpressionError(error.to_string()))?;
        let nodes = Value::Object(nodes(&parsed, outputs));
        let parameters = Value::Object(outputs.parameters().clone());
        let item = outputs.item().unwrap_or(Value::Null);
        let scope = Scope::new([("nodes", &nodes), ("parameters", &parameters), ("item", &item)]);
        parsed
            .evaluate(&scope)
            .map_err(|error| ExpressionError(error.to_string()))
    }
}

/// Only the nodes that the expression may read: outputs of thousands are not copied for one of them.
fn nodes(expression: &Expression, outputs: &dyn NodeOutputs) -> Map<String, Value> {
    if !expression.reads("nodes") {
        return Map::new();
    }
    let named: Option<Vec<&str>> = expression
        .paths()
        .iter()
        .filter(|path| path.variable == "nodes")
        .map(|path| path.field.as_deref())
        .collect();
    let names = outputs.names();
    names
        .into_iter()
        .filter(|name| named.as_ref().is_none_or(|named| named.contains(&name.as_str())))
        .filter_map(|name| outputs.output(&name).map(|output| (name, output)))
        .collect()
}
