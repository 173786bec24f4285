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
    /// `{"status", "reason"?, "outputs": {…}, "evidence": {NAME: RESULT}}`. For a fan-out
    /// `{"status", "items": {KEY: {…as above}}}`; within the same item of a lane or fan-out, the item's
    /// own. `None` when the plan has no such node.
    fn output(&self, template_node: &str) -> Option<Value>;
    /// The fan-out element that the node stands for: `{"index", "key", "value"?}`.
    fn item(&self) -> Option<Value>;
    /// The plan's parameters.
    fn parameters(&self) -> &serde_json::Map<String, Value>;
    /// The names that [`Self::output`] knows: the template nodes before this one that have ended.
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
