//! Typed reading of the marked tree: each call takes what it expects and reports what it finds instead.

use core::str::FromStr;

use serde_json::Value;

use crate::dynamic::Dynamic;
use crate::expression::Expression;
use crate::fault::{FaultCode, Faults, Position, suggestion};
use crate::yaml::{Content, Key, Node};

/// A value with the place it was written at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    pub(crate) at: Position,
    pub(crate) value: T,
}

/// The fields of one mapping. Every field must be taken; [`Fields::finish`] reports those that were not.
pub(crate) struct Fields<'n, 'f> {
    pub(crate) at: Position,
    what: &'static str,
    fields: &'n [(Key, Node)],
    known: Vec<&'static str>,
    faults: &'f Faults,
}

pub(crate) fn wrong_type(node: &Node, what: &str, wanted: &str, faults: &Faults) {
    let remedy = match &node.content {
        Content::Null => "write a value; what belongs under it may be indented too little".to_owned(),
        _ if wanted == "text" => "quote the value to make it text".to_owned(),
        _ => format!("write {wanted}"),
    };
    faults.add(
        node.at,
        FaultCode::WrongType,
        format!("`{what}` is {}, it must be {wanted}", node.content.noun()),
        remedy,
    );
}

impl<'n, 'f> Fields<'n, 'f> {
    /// Opens a mapping; anything else is a fault.
    pub(crate) fn open(node: &'n Node, what: &'static str, faults: &'f Faults) -> Option<Self> {
        let Content::Map(fields) = &node.content else {
            wrong_type(node, what, "a mapping", faults);
            return None;
        };
        Some(Self {
            at: node.at,
            what,
            fields,
            known: Vec::new(),
            faults,
        })
    }

    pub(crate) const fn faults(&self) -> &'f Faults {
        self.faults
    }

    /// The field's node, when it is there.
    pub(crate) fn node(&mut self, name: &'static str) -> Option<&'n Node> {
        self.known.push(name);
        self.fields
            .iter()
            .find(|(key, _)| key.name == name)
            .map(|(_, node)| node)
    }

    /// The field's node, whose absence is a fault.
    pub(crate) fn required(&mut self, name: &'static str) -> Option<&'n Node> {
        let node = self.node(name);
        if node.is_none() {
            self.faults.add(
                self.at,
                FaultCode::MissingField,
                format!("this {} has no `{name}`", self.what),
                format!("add `{name}`; if it is there, its indentation hides it"),
            );
        }
        node
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Option<Placed<String>> {
        let node = self.node(name)?;
        text(node, name, self.faults)
    }

    pub(crate) fn required_text(&mut self, name: &'static str) -> Option<Placed<String>> {
        let node = self.required(name)?;
        text(node, name, self.faults)
    }

    /// A text, or nothing.
    pub(crate) fn prose(&mut self, name: &'static str) -> String {
        self.text(name).map(|t| t.value).unwrap_or_default()
    }

    pub(crate) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let node = self.node(name)?;
        if let Content::Bool(value) = node.content {
            return Some(value);
        }
        wrong_type(node, name, "`true` or `false`", self.faults);
        None
    }

    /// An integer within bounds.
    pub(crate) fn integer(&mut self, name: &'static str, least: u32, most: u32) -> Option<u32> {
        let node = self.node(name)?;
        integer(node, name, least, most, self.faults)
    }

    pub(crate) fn list(&mut self, name: &'static str) -> &'n [Node] {
        match self.node(name) {
            Some(node) => list(node, name, self.faults),
            None => &[],
        }
    }

    pub(crate) fn map(&mut self, name: &'static str) -> &'n [(Key, Node)] {
        match self.node(name) {
            Some(node) => map(node, name, self.faults),
            None => &[],
        }
    }

    /// A text that parses as `T`.
    pub(crate) fn parsed<T: FromStr<Err: core::fmt::Display>>(&mut self, name: &'static str) -> Option<T> {
        let node = self.node(name)?;
        parsed(node, name, self.faults).map(|placed| placed.value)
    }

    /// A list of texts that parse as `T`.
    pub(crate) fn parsed_list<T: FromStr<Err: core::fmt::Display>>(&mut self, name: &'static str) -> Vec<T> {
        let faults = self.faults;
        self.list(name)
            .iter()
            .filter_map(|node| parsed(node, name, faults).map(|placed| placed.value))
            .collect()
    }

    /// One word out of some.
    pub(crate) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
        let node = self.node(name)?;
        choice(node, name, choices, self.faults)
    }

    pub(crate) fn expression(&mut self, name: &'static str) -> Option<Placed<Expression>> {
        let found = self.text(name)?;
        expression(&found, self.faults)
    }

    /// A value with `${...}` in it.
    pub(crate) fn dynamic(&mut self, name: &'static str) -> Option<Placed<Dynamic>> {
        let node = self.node(name)?;
        Some(Placed {
            at: node.at,
            value: dynamic(node, self.faults),
        })
    }

    /// Reports every field that nobody asked for.
    pub(crate) fn finish(self) {
        for (key, _) in self.fields {
            if !self.known.contains(&key.name.as_str()) && !key.name.starts_with('\u{0}') {
                self.faults.add(
                    key.at,
                    FaultCode::UnknownField,
                    format!("a {} has no field `{}`", self.what, key.name),
                    format!(
                        "{}; check also its indentation",
                        suggestion(&key.name, self.known.iter().copied())
                    ),
                );
            }
        }
    }
}

pub(crate) fn text(node: &Node, name: &str, faults: &Faults) -> Option<Placed<String>> {
    if let Content::Text(value) = &node.content {
        if value.contains('\0') {
            faults.add(
                node.at,
                FaultCode::InvalidValue,
                format!("`{name}` contains NUL"),
                "remove it",
            );
            return None;
        }
        return Some(Placed {
            at: node.at,
            value: value.clone(),
        });
    }
    wrong_type(node, name, "text", faults);
    None
}

pub(crate) fn integer(node: &Node, name: &str, least: u32, most: u32, faults: &Faults) -> Option<u32> {
    let Content::Integer(value) = node.content else {
        wrong_type(node, name, "an integer", faults);
        return None;
    };
    let fitting = u32::try_from(value).ok().filter(|v| (least..=most).contains(v));
    if fitting.is_none() {
        faults.add(
            node.at,
            FaultCode::InvalidValue,
            format!("`{name}` is {value}"),
            format!("write a value from {least} to {most}"),
        );
    }
    fitting
}

pub(crate) fn list<'n>(node: &'n Node, name: &str, faults: &Faults) -> &'n [Node] {
    if let Content::List(items) = &node.content {
        return items;
    }
    wrong_type(node, name, "a list", faults);
    &[]
}

pub(crate) fn map<'n>(node: &'n Node, name: &str, faults: &Faults) -> &'n [(Key, Node)] {
    if let Content::Map(fields) = &node.content {
        return fields;
    }
    wrong_type(node, name, "a mapping", faults);
    &[]
}

pub(crate) fn parsed<T: FromStr<Err: core::fmt::Display>>(
    node: &Node,
    name: &str,
    faults: &Faults,
) -> Option<Placed<T>> {
    let found = text(node, name, faults)?;
    match found.value.parse() {
        Ok(value) => Some(Placed { at: found.at, value }),
        Err(error) => {
            faults.add(
                found.at,
                FaultCode::InvalidValue,
                format!("`{name}`: {error}"),
                "correct the value",
            );
            None
        }
    }
}

pub(crate) fn choice<T: Copy>(node: &Node, name: &str, choices: &[(&'static str, T)], faults: &Faults) -> Option<T> {
    let found = text(node, name, faults)?;
    let chosen = choices
        .iter()
        .find(|(word, _)| *word == found.value)
        .map(|(_, value)| *value);
    if chosen.is_none() {
        faults.add(
            found.at,
            FaultCode::InvalidValue,
            format!("`{name}` cannot be `{}`", found.value),
            suggestion(&found.value, choices.iter().map(|(word, _)| *word)),
        );
    }
    chosen
}

pub(crate) fn expression(found: &Placed<String>, faults: &Faults) -> Option<Placed<Expression>> {
    match Expression::parse(&found.value) {
        Ok(value) => Some(Placed { at: found.at, value }),
        Err(error) => {
            faults.add(
                found.at,
                FaultCode::BadExpression,
                format!("`{}`: {error}", found.value),
                "write a CEL expression",
            );
            None
        }
    }
}

/// The tree with its `${...}` read. What cannot be read is reported and stands as null.
pub(crate) fn dynamic(node: &Node, faults: &Faults) -> Dynamic {
    match &node.content {
        Content::Text(text) => Dynamic::parse(text).unwrap_or_else(|error| {
            faults.add(
                node.at,
                FaultCode::BadExpression,
                error.to_string(),
                "write a CEL expression between `${` and `}`, or `$${` for a literal `${`",
            );
            Dynamic::Fixed(Value::Null)
        }),
        Content::List(items) => {
            let items: Vec<Dynamic> = items.iter().map(|item| dynamic(item, faults)).collect();
            if items.iter().all(|item| matches!(item, Dynamic::Fixed(_))) {
                return Dynamic::Fixed(items.iter().map(fixed).collect());
            }
            Dynamic::List(items)
        }
        Content::Map(fields) => {
            let fields: Vec<(String, Dynamic)> = fields
                .iter()
                .map(|(key, node)| (key.name.clone(), dynamic(node, faults)))
                .collect();
            if fields.iter().all(|(_, field)| matches!(field, Dynamic::Fixed(_))) {
                return Dynamic::Fixed(fields.iter().map(|(key, field)| (key.clone(), fixed(field))).collect());
            }
            Dynamic::Map(fields.into_iter().collect())
        }
        _ => Dynamic::Fixed(node.to_json()),
    }
}

fn fixed(value: &Dynamic) -> Value {
    match value {
        Dynamic::Fixed(value) => value.clone(),
        _ => Value::Null,
    }
}
