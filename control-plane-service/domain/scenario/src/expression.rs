//! CEL, held within limits.
//!
//! The interpreter has no cost limit and iterates maps in no fixed order, so both are dealt with here:
//! - an expression has at most [`MAX_EXPRESSION`] bytes, a macro inside a macro's body is refused, and a
//!   macro runs over at most [`MAX_ITERATIONS`] elements: the work of one evaluation is bounded by
//!   length × elements;
//! - what a macro iterates over is put in order first: a map yields its keys sorted;
//! - functions are those of [`FUNCTIONS`]; none reads a clock, a random source or the outside.
//!
//! Values go in and come out as JSON. Integers are CEL `int`s.
//!
//! Long because each limit stands beside the tests that show what it refuses.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::{Context, Env, ExecutionError, Program};
use serde_json::{Map, Number, Value};

/// Longest expression, in bytes.
pub const MAX_EXPRESSION: usize = 2_000;
/// Most elements that a macro (`all`, `exists`, `exists_one`, `map`, `filter`) may run over.
pub const MAX_ITERATIONS: usize = 1_000;
/// The functions that an expression may call.
pub const FUNCTIONS: [&str; 11] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "type",
    "dyn",
];

/// Orders what a macro iterates over; inserted by [`Expression::parse`] around every such range.
const IN_ORDER: &str = "@in_order";

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A parsed expression.
#[derive(Clone)]
pub struct Expression {
    source: String,
    tree: Arc<IdedExpr>,
    paths: BTreeSet<Path>,
}

/// A variable that an expression reads, with the first field of it where the text names one:
/// `parameters.port` and `nodes['pre-check']`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    pub variable: String,
    pub field: Option<String>,
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    #[error("the expression is {length} bytes long, at most {MAX_EXPRESSION} are allowed")]
    TooLong { length: usize },
    #[error("{0}")]
    Syntax(String),
    #[error("a macro inside a macro's body is not allowed")]
    NestedMacro,
    #[error("unknown function `{0}`")]
    UnknownFunction(String),
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    #[error("`{expression}` has no value: {problem}")]
    Failed { expression: String, problem: String },
    #[error("`{expression}` is {found}, a boolean was expected")]
    NotBoolean { expression: String, found: Value },
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Expression {
    /// Parses `source` and checks it against the limits.
    ///
    /// # Errors
    /// [`ExpressionError`].
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        if source.len() > MAX_EXPRESSION {
            return Err(ExpressionError::TooLong { length: source.len() });
        }
        let program = Program::compile(source).map_err(|errors| {
            let first = errors.errors.first().map(|e| e.msg.clone());
            ExpressionError::Syntax(first.unwrap_or_else(|| "it is not CEL".to_owned()))
        })?;
        let mut tree = program.expression().clone();
        let mut reading = Reading::default();
        reading.visit(&mut tree, false)?;
        Ok(Self {
            source: source.to_owned(),
            tree: Arc::new(tree),
            paths: reading.paths,
        })
    }

    /// The text it was parsed from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Everything that it reads, sorted. Variables that a macro binds are not among them.
    #[must_use]
    pub const fn paths(&self) -> &BTreeSet<Path> {
        &self.paths
    }

    /// Whether it reads `variable`.
    #[must_use]
    pub fn reads(&self, variable: &str) -> bool {
        self.paths.iter().any(|path| path.variable == variable)
    }

    /// Its value.
    ///
    /// # Errors
    /// When it has none, or one that JSON cannot say.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Value, EvaluationError> {
        let failed = |problem: String| EvaluationError::Failed {
            expression: self.source.clone(),
            problem,
        };
        let value = cel::Value::resolve(&self.tree, &scope.0).map_err(|e| failed(told(&e)))?;
        to_json(&value).map_err(failed)
    }

    /// Its value, which must be a boolean.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn holds(&self, scope: &Scope<'_>) -> Result<bool, EvaluationError> {
        match self.evaluate(scope)? {
            Value::Bool(value) => Ok(value),
            found => Err(EvaluationError::NotBoolean {
                expression: self.source.clone(),
                found,
            }),
        }
    }
}

/// The variables that an expression can read.
pub struct Scope<'p>(Context<'p, 'static>);

impl Scope<'_> {
    /// A scope with these variables.
    #[must_use]
    pub fn new<'v>(variables: impl IntoIterator<Item = (&'v str, &'v Value)>) -> Scope<'static> {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        context
            .add_function(IN_ORDER, in_order)
            .expect("the name is no function of the standard library, no expression can spell it");
        let mut scope = Scope(context);
        for (name, value) in variables {
            scope.set(name, value);
        }
        scope
    }

    /// A scope that sees everything of this one and `value` as `name`.
    #[must_use]
    pub fn with<'s>(&'s self, name: &str, value: &Value) -> Scope<'s> {
        let mut scope = Scope(self.0.new_inner_scope());
        scope.set(name, value);
        scope
    }

    fn set(&mut self, name: &str, value: &Value) {
        self.0.add_variable_from_value(name, from_json(value));
    }
}

#[derive(Default)]
struct Reading {
    paths: BTreeSet<Path>,
    bound: Vec<String>,
}

impl Reading {
    fn visit(&mut self, node: &mut IdedExpr, in_body: bool) -> Result<(), ExpressionError> {
        if let Some(path) = path_of(&node.expr) {
            if !self.bound.contains(&path.variable) {
                self.paths.insert(path);
            }
            return Ok(());
        }
        match &mut node.expr {
            Expr::Call(call) => {
                if call.func_name.chars().all(|c| c.is_ascii_alphanumeric())
                    && !FUNCTIONS.contains(&call.func_name.as_str())
                {
                    return Err(ExpressionError::UnknownFunction(call.func_name.clone()));
                }
                for part in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
                    self.visit(part, in_body)?;
                }
                Ok(())
            }
            Expr::Comprehension(macro_) => {
                if in_body {
                    return Err(ExpressionError::NestedMacro);
                }
                self.visit(&mut macro_.iter_range, false)?;
                let range = core::mem::take(&mut macro_.iter_range);
                macro_.iter_range = IdedExpr {
                    id: range.id,
                    expr: Expr::Call(CallExpr {
                        func_name: IN_ORDER.to_owned(),
                        target: None,
                        args: vec![range],
                    }),
                };
                let depth = self.bound.len();
                self.bound.push(macro_.iter_var.clone());
                self.bound.extend(macro_.iter_var2.clone());
                self.bound.push(macro_.accu_var.clone());
                for part in [
                    &mut macro_.accu_init,
                    &mut macro_.loop_cond,
                    &mut macro_.loop_step,
                    &mut macro_.result,
                ] {
                    self.visit(part, true)?;
                }
                self.bound.truncate(depth);
                Ok(())
            }
            Expr::List(list) => list.elements.iter_mut().try_for_each(|e| self.visit(e, in_body)),
            Expr::Map(map) => map
                .entries
                .iter_mut()
                .try_for_each(|e| self.entry(&mut e.expr, in_body)),
            Expr::Select(select) => self.visit(&mut select.operand, in_body),
            Expr::Struct(value) => Err(ExpressionError::UnknownFunction(value.type_name.clone())),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    fn entry(&mut self, entry: &mut EntryExpr, in_body: bool) -> Result<(), ExpressionError> {
        match entry {
            EntryExpr::StructField(field) => self.visit(&mut field.value, in_body),
            EntryExpr::MapEntry(entry) => {
                self.visit(&mut entry.key, in_body)?;
                self.visit(&mut entry.value, in_body)
            }
        }
    }
}

/// `x`, `x.y…` or `x['y']…` as a path; `None` for anything else.
fn path_of(expr: &Expr) -> Option<Path> {
    match expr {
        Expr::Ident(name) => Some(Path {
            variable: name.clone(),
            field: None,
        }),
        Expr::Select(select) => match &select.operand.expr {
            Expr::Ident(name) => Some(Path {
                variable: name.clone(),
                field: Some(select.field.clone()),
            }),
            inner => path_of(inner).filter(|path| path.field.is_some()),
        },
        Expr::Call(call) if call.func_name == "_[_]" && call.target.is_none() => match call.args.as_slice() {
            [
                IdedExpr {
                    expr: Expr::Ident(name),
                    ..
                },
                IdedExpr {
                    expr: Expr::Literal(LiteralValue::String(key)),
                    ..
                },
            ] => Some(Path {
                variable: name.clone(),
                field: Some(key.inner().to_owned()),
            }),
            [
                inner,
                IdedExpr {
                    expr: Expr::Literal(_), ..
                },
            ] => path_of(&inner.expr).filter(|path| path.field.is_some()),
            _ => None,
        },
        _ => None,
    }
}

fn in_order(range: cel::Value) -> Result<cel::Value, ExecutionError> {
    let list = match range {
        cel::Value::List(items) => items,
        cel::Value::Map(map) => {
            // The second part tells a text key from a number that is written the same.
            let keys: BTreeMap<(String, String), cel::Value> = map
                .map
                .keys()
                .map(|key| ((key.to_string(), format!("{key:?}")), cel::Value::from(key.clone())))
                .collect();
            Arc::new(keys.into_values().collect())
        }
        other => return Err(ExecutionError::unsupported_target_type(other)),
    };
    if list.len() > MAX_ITERATIONS {
        return Err(ExecutionError::function_error(
            "macro",
            format!("{} elements, a macro runs over at most {MAX_ITERATIONS}", list.len()),
        ));
    }
    Ok(cel::Value::List(list))
}

/// An interpreter's error without the values in it: those may be long.
fn told(error: &ExecutionError) -> String {
    let text = error.to_string();
    match text.char_indices().nth(300) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

fn from_json(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => number
            .as_i64()
            .map(cel::Value::Int)
            .or_else(|| number.as_u64().map(cel::Value::UInt))
            .unwrap_or_else(|| cel::Value::Float(number.as_f64().unwrap_or(f64::NAN))),
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(from_json).collect())),
        Value::Object(fields) => {
            let map: HashMap<String, cel::Value> = fields
                .iter()
                .map(|(key, value)| (key.clone(), from_json(value)))
                .collect();
            cel::Value::Map(map.into())
        }
    }
}

fn to_json(value: &cel::Value) -> Result<Value, String> {
    Ok(match value {
        cel::Value::Null => Value::Null,
        cel::Value::Bool(value) => Value::Bool(*value),
        cel::Value::Int(value) => Value::from(*value),
        cel::Value::UInt(value) => Value::from(*value),
        cel::Value::Float(value) => Number::from_f64(*value)
            .map(Value::Number)
            .ok_or_else(|| format!("{value} is no JSON number"))?,
        cel::Value::String(text) => Value::String(text.to_string()),
        cel::Value::List(items) => items.iter().map(to_json).collect::<Result<_, _>>()?,
        cel::Value::Map(map) => {
            let mut fields = Map::new();
            for (key, value) in map.map.iter() {
                fields.insert(key.to_string(), to_json(value)?);
            }
            Value::Object(fields)
        }
        other => return Err(format!("{:?} has no JSON form", other.type_of())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(source: &str, variables: &Value) -> Result<Value, String> {
        let expression = Expression::parse(source).map_err(|e| e.to_string())?;
        let object = variables.as_object().unwrap();
        let scope = Scope::new(object.iter().map(|(k, v)| (k.as_str(), v)));
        expression.evaluate(&scope).map_err(|e| e.to_string())
    }

    #[test]
    fn values_go_in_and_out_as_json() {
        let variables = json!({"p": {"port": 8080, "name": "é", "list": [1, 2]}});
        assert_eq!(value("p.port + 1", &variables), Ok(json!(8081)));
        assert_eq!(value("p.name + string(p.port)", &variables), Ok(json!("é8080")));
        assert_eq!(value("p.list.map(x, x * 2)", &variables), Ok(json!([2, 4])));
        assert_eq!(value("has(p.nope) ? 1 : 2", &variables), Ok(json!(2)));
        assert_eq!(value("{'a': p.list}", &variables), Ok(json!({"a": [1, 2]})));
        assert!(value("p.nope", &variables).unwrap_err().contains("No such key"));
    }

    #[test]
    fn maps_are_iterated_in_the_order_of_their_keys() {
        let fields: Map<String, Value> = (0..40).map(|n| (format!("k{n:02}"), json!(n))).collect();
        let sorted: Vec<String> = fields.keys().cloned().collect();
        for _ in 0..20 {
            assert_eq!(value("m.map(k, k)", &json!({ "m": fields })), Ok(json!(sorted)));
            assert_eq!(
                value("{'z': 1, 'y': 2, 'x': 3, 'w': 4}.filter(k, true)", &json!({})),
                Ok(json!(["w", "x", "y", "z"]))
            );
        }
    }

    #[test]
    fn limits_are_stated_and_kept() {
        let long = format!("'{}'", "x".repeat(MAX_EXPRESSION));
        assert!(matches!(Expression::parse(&long), Err(ExpressionError::TooLong { .. })));
        assert_eq!(
            Expression::parse("a.map(x, b.map(y, y))").unwrap_err(),
            ExpressionError::NestedMacro
        );
        assert!(
            Expression::parse("a.filter(x, x > 1).map(x, x)").is_ok(),
            "one after the other is fine"
        );
        assert_eq!(
            Expression::parse("now()").unwrap_err(),
            ExpressionError::UnknownFunction("now".into())
        );
        let many: Vec<u32> = (0..1001).collect();
        assert!(
            value("l.map(x, x)", &json!({ "l": many }))
                .unwrap_err()
                .contains("at most 1000")
        );
        assert!(matches!(Expression::parse("a +"), Err(ExpressionError::Syntax(_))));
    }

    #[test]
    fn an_expression_names_what_it_reads() {
        let expression =
            Expression::parse("parameters.a + nodes['pre-check'].status + slots.web.map(h, h.id)[0] + item");
        let paths: Vec<(String, Option<String>)> = expression
            .unwrap()
            .paths()
            .iter()
            .map(|p| (p.variable.clone(), p.field.clone()))
            .collect();
        let named = |v: &str, f: Option<&str>| (v.to_owned(), f.map(str::to_owned));
        assert_eq!(
            paths,
            [
                named("item", None),
                named("nodes", Some("pre-check")),
                named("parameters", Some("a")),
                named("slots", Some("web")),
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[a-c0-9.()\\[\\]{}'\"+*?:, &|=<>!-]{0,60}") {
            if let Ok(expression) = Expression::parse(&text) {
                let _ = expression.evaluate(&Scope::new([("a", &json!([1, {"b": 2}]))]));
            }
        }
    }
}
