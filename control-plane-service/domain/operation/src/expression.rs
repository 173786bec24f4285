//! Expressions over earlier outputs. Their language (CEL) and its limits belong to the scenario crate;
//! deciding only needs a value.

use serde_json::Value;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExpressionError(pub String);

/// What an expression may look at.
pub trait NodeOutputs {
    /// What a template node came to, as seen from the node whose expression it is:
    /// `{"status", "reason"?, "message"?, "exit"?: {"code", "category", "message"}, "outputs": {…},
    /// "artifacts": {NAME: {"uri", "type", "sha256"?}}, "evidence": {NAME: RESULT}}`. For a fan-out also
    /// `"items": {KEY: {…as above}}`, or only the item's own when the looking node is of the same item.
    /// `None` unless it comes before the looking node.
    fn output(&self, template_node: &str) -> Option<Value>;
    /// The fan-out element that the node stands for: `{"index", "key", "value"?}`.
    fn item(&self) -> Option<Value>;
    /// The plan's parameters.
    fn parameters(&self) -> &serde_json::Map<String, Value>;
    /// The names that [`Self::output`] knows, sorted: the template nodes before the looking one.
    fn names(&self) -> Vec<String>;
}

/// Evaluates expressions. Pure: the same outputs give the same value.
pub trait Expressions {
    /// The value of `expression`.
    ///
    /// # Errors
    /// When it cannot be evaluated over these outputs.
    fn evaluate(&self, expression: &str, outputs: &dyn NodeOutputs) -> Result<Value, ExpressionError>;
}
