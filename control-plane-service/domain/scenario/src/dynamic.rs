//! Values of a template with `${...}` in them.
//!
//! A text that is one `${expression}` becomes the expression's value, whatever its type; an expression
//! within a longer text is put in as text. `$${` stands for a literal `${`. What reads the results of
//! earlier nodes (`nodes`) cannot be known while planning: it is *deferred*, its expression is kept under
//! the JSON Pointer of the place and evaluated when the node is dispatched.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::expression::{EvaluationError, Expression, ExpressionError, Scope};

/// The variable that only exists once earlier nodes have ended.
pub const NODES: &str = "nodes";

/// A value that may depend on variables.
#[derive(Debug, Clone, PartialEq)]
pub enum Dynamic {
    /// Nothing in it depends on anything.
    Fixed(Value),
    /// `${expression}`: the expression's value as it is.
    Whole(Expression),
    /// Text with expressions in it.
    Text(Vec<Piece>),
    List(Vec<Self>),
    Map(BTreeMap<String, Self>),
}

/// A part of a [`Dynamic::Text`].
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Literal(String),
    Expression(Expression),
}

/// Why a text with `${` in it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterpolationError {
    #[error("`${{` is not closed by `}}`")]
    Unclosed,
    #[error("in `${{{source_text}}}`: {error}")]
    Expression {
        source_text: String,
        error: ExpressionError,
    },
}

/// What resolving left for later: JSON Pointer → CEL expression over `parameters`, `item` and `nodes`.
pub type Deferred = BTreeMap<String, String>;

impl Dynamic {
    /// Reads one text.
    ///
    /// # Errors
    /// [`InterpolationError`] for the first expression that cannot be read.
    pub fn parse(text: &str) -> Result<Self, InterpolationError> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                literal.push_str(&rest[..at - 1]);
                literal.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            literal.push_str(&rest[..at]);
            let inner = &rest[at + 2..];
            let end = closing_brace(inner).ok_or(InterpolationError::Unclosed)?;
            if !literal.is_empty() {
                pieces.push(Piece::Literal(core::mem::take(&mut literal)));
            }
            let source = inner[..end].trim();
            let expression = Expression::parse(source).map_err(|error| InterpolationError::Expression {
                source_text: source.to_owned(),
                error,
            })?;
            pieces.push(Piece::Expression(expression));
            rest = &inner[end + 1..];
        }
        literal.push_str(rest);
        if pieces.is_empty() {
            return Ok(Self::Fixed(Value::String(literal)));
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(match pieces.as_mut_slice() {
            [Piece::Expression(only)] => Self::Whole(only.clone()),
            _ => Self::Text(pieces),
        })
    }

    /// All expressions in it.
    #[must_use]
    pub fn expressions(&self) -> Vec<&Expression> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Whole(expression) => vec![expression],
            Self::Text(pieces) => pieces
                .iter()
                .filter_map(|piece| match piece {
                    Piece::Expression(expression) => Some(expression),
                    Piece::Literal(_) => None,
                })
                .collect(),
            Self::List(items) => items.iter().flat_map(Self::expressions).collect(),
            Self::Map(fields) => fields.values().flat_map(Self::expressions).collect(),
        }
    }

    /// Its value. Places that must wait hold null and are put into `deferred`.
    ///
    /// # Errors
    /// When an expression that can be evaluated has no value.
    pub fn resolve(&self, scope: &Scope<'_>, deferred: &mut Deferred) -> Result<Value, EvaluationError> {
        self.resolve_at(scope, &mut String::new(), deferred)
    }

    fn resolve_at(
        &self,
        scope: &Scope<'_>,
        pointer: &mut String,
        deferred: &mut Deferred,
    ) -> Result<Value, EvaluationError> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::Whole(expression) if expression.reads(NODES) => {
                deferred.insert(pointer.clone(), expression.source().to_owned());
                Ok(Value::Null)
            }
            Self::Whole(expression) => expression.evaluate(scope),
            Self::Text(pieces) => text_of(pieces, scope, pointer, deferred),
            Self::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    values.push(item.resolve_below(scope, &index.to_string(), pointer, deferred)?);
                }
                Ok(Value::Array(values))
            }
            Self::Map(fields) => {
                let mut values = Map::new();
                for (key, field) in fields {
                    let token = key.replace('~', "~0").replace('/', "~1");
                    values.insert(key.clone(), field.resolve_below(scope, &token, pointer, deferred)?);
                }
                Ok(Value::Object(values))
            }
        }
    }

    fn resolve_below(
        &self,
        scope: &Scope<'_>,
        token: &str,
        pointer: &mut String,
        deferred: &mut Deferred,
    ) -> Result<Value, EvaluationError> {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(token);
        let value = self.resolve_at(scope, pointer, deferred);
        pointer.truncate(length);
        value
    }
}

fn text_of(
    pieces: &[Piece],
    scope: &Scope<'_>,
    pointer: &str,
    deferred: &mut Deferred,
) -> Result<Value, EvaluationError> {
    let waits = |piece: &Piece| matches!(piece, Piece::Expression(e) if e.reads(NODES));
    if !pieces.iter().any(waits) {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Expression(expression) => text.push_str(&as_text(&expression.evaluate(scope)?)),
            }
        }
        return Ok(Value::String(text));
    }
    let mut parts = Vec::new();
    for piece in pieces {
        parts.push(match piece {
            Piece::Literal(literal) => cel_literal(literal),
            Piece::Expression(expression) if expression.reads(NODES) => format!("string({})", expression.source()),
            Piece::Expression(expression) => cel_literal(&as_text(&expression.evaluate(scope)?)),
        });
    }
    deferred.insert(pointer.to_owned(), parts.join(" + "));
    Ok(Value::Null)
}

/// A value inside a longer text: texts as they are, everything else as compact JSON.
#[must_use]
pub fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A CEL string literal; JSON's escapes are a subset of CEL's.
fn cel_literal(text: &str) -> String {
    Value::from(text).to_string()
}

/// Where the brace that closes an expression is: not one inside a string or of a map within it.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None => match c {
                '\'' | '"' => quote = Some(c),
                '{' => depth += 1,
                '}' if depth == 0 => return Some(at),
                '}' => depth -= 1,
                _ => {}
            },
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resolve(text: &str) -> (Value, Deferred) {
        let variables = json!({"port": 8080, "title": "a\"b", "list": [1]});
        let scope = Scope::new([("parameters", &variables)]);
        let mut deferred = Deferred::new();
        let value = Dynamic::parse(text).unwrap().resolve(&scope, &mut deferred).unwrap();
        (value, deferred)
    }

    #[test]
    fn one_expression_keeps_its_type_and_one_within_text_becomes_text() {
        assert_eq!(resolve("${parameters.port}").0, json!(8080));
        assert_eq!(resolve("http://x:${parameters.port}/").0, json!("http://x:8080/"));
        assert_eq!(resolve("${parameters.list} ${ {'a': '}'}.a }").0, json!("[1] }"));
        assert_eq!(resolve("costs $5, $${x}").0, json!("costs $5, ${x}"));
    }

    #[test]
    fn what_reads_earlier_nodes_waits_and_the_rest_of_its_text_is_settled_now() {
        let (value, deferred) = resolve("${nodes.build.artifacts.image.uri}");
        assert_eq!(value, Value::Null);
        assert_eq!(deferred[""], "nodes.build.artifacts.image.uri");
        let (_, deferred) = resolve("${parameters.title}:${nodes.build.exit.code}");
        assert_eq!(deferred[""], r#""a\"b" + ":" + string(nodes.build.exit.code)"#);
        let later = Expression::parse(&deferred[""]).unwrap();
        let nodes = json!({"build": {"exit": {"code": 0}}});
        assert_eq!(
            later.evaluate(&Scope::new([("nodes", &nodes)])).unwrap(),
            json!("a\"b:0")
        );
    }

    #[test]
    fn a_deferred_place_is_named_by_its_pointer() {
        let dynamic = Dynamic::Map(BTreeMap::from([(
            "a/b".to_owned(),
            Dynamic::List(vec![Dynamic::Fixed(json!(1)), Dynamic::parse("${nodes.x}").unwrap()]),
        )]));
        let mut deferred = Deferred::new();
        let value = dynamic.resolve(&Scope::new([]), &mut deferred).unwrap();
        assert_eq!(value, json!({"a/b": [1, null]}));
        assert_eq!(deferred.keys().collect::<Vec<_>>(), ["/a~1b/1"]);
    }

    #[test]
    fn what_cannot_be_read_says_so() {
        assert_eq!(Dynamic::parse("${a").unwrap_err(), InterpolationError::Unclosed);
        assert!(Dynamic::parse("${1 +}").is_err());
    }
}
