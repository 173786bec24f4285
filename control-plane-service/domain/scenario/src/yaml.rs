//! YAML as a tree in which everything knows its place.
//!
//! Built from the parser's events rather than by a loader, because a loader stops at the first
//! duplicate key and a pack's author wants to see them all. Refused, each with its place: duplicate
//! keys, aliases and anchors (what a pack says must be readable where it stands), tags, keys that are
//! not text, several documents, and depth or size past the limits.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};

use crate::fault::{FaultCode, Faults, Position};

/// Deepest nesting of a file.
pub const MAX_DEPTH: usize = 48;
/// Most nodes of a file.
pub const MAX_NODES: usize = 200_000;

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) content: Content,
}

/// A key of a mapping with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) at: Position,
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file, each key once.
    Map(Vec<(Key, Node)>),
}

impl Content {
    /// What to call it in a message.
    pub(crate) const fn noun(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

impl Node {
    /// The value without its places.
    pub(crate) fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Integer(value) => Value::from(*value),
            Content::Float(value) => Number::from_f64(*value).map_or(Value::Null, Value::Number),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(fields) => fields
                .iter()
                .map(|(key, node)| (key.name.clone(), node.to_json()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }

    /// The place of what a JSON Pointer names, or of the nearest thing around it.
    pub(crate) fn place_of(&self, pointer: &str) -> Position {
        let mut node = self;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let next = match &node.content {
                Content::Map(fields) => fields.iter().find(|(key, _)| key.name == token).map(|(_, n)| n),
                Content::List(items) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => None,
            };
            let Some(next) = next else { break };
            node = next;
        }
        node.at
    }
}

fn position(marker: &Marker) -> Position {
    Position {
        line: u32::try_from(marker.line()).unwrap_or(u32::MAX),
        column: u32::try_from(marker.col() + 1).unwrap_or(u32::MAX),
    }
}

/// Reads one document. `None` when there is nothing usable; the faults say why.
pub(crate) fn read(text: &str, faults: &Faults) -> Option<Node> {
    let mut builder = Builder {
        faults,
        open: Vec::new(),
        root: None,
        nodes: 0,
    };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => {
                if !builder.take(event, span) {
                    return None;
                }
            }
            Err(error) => {
                faults.add(
                    position(error.marker()),
                    FaultCode::Syntax,
                    format!("this is not YAML: {}", error.info()),
                    "mend this line or its indentation; what follows it was not read",
                );
                return None;
            }
        }
    }
    if builder.root.is_none() {
        faults.add(
            Position { line: 1, column: 1 },
            FaultCode::Syntax,
            "the file is empty",
            "write the document into it",
        );
    }
    builder.root
}

enum Open {
    List(Position, Vec<Node>),
    Map {
        at: Position,
        fields: Vec<(Key, Node)>,
        seen: HashMap<String, Position>,
        key: Option<Key>,
    },
}

struct Builder<'f> {
    faults: &'f Faults,
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
}

impl Builder<'_> {
    /// Takes one event; false when reading cannot go on.
    fn take(&mut self, event: Event<'_>, span: Span) -> bool {
        let at = position(&span.start);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                self.syntax(
                    at,
                    "a second document begins here",
                    "keep one document a file, without `---` inside",
                );
                return false;
            }
            Event::Alias(_) => {
                self.syntax(
                    at,
                    "aliases are not allowed in packs",
                    "write the value out where it is used",
                );
                return self.put(Node {
                    at,
                    content: Content::Null,
                });
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.decoration(at, anchor, tag.is_some());
                return self.put(Node {
                    at,
                    content: scalar(&text, style),
                });
            }
            Event::SequenceStart(anchor, tag) => {
                self.decoration(at, anchor, tag.is_some());
                self.open.push(Open::List(at, Vec::new()));
                return self.within_depth(at);
            }
            Event::MappingStart(anchor, tag) => {
                self.decoration(at, anchor, tag.is_some());
                self.open.push(Open::Map {
                    at,
                    fields: Vec::new(),
                    seen: HashMap::new(),
                    key: None,
                });
                return self.within_depth(at);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let node = match self.open.pop() {
                    Some(Open::List(at, items)) => Node {
                        at,
                        content: Content::List(items),
                    },
                    Some(Open::Map { at, fields, .. }) => Node {
                        at,
                        content: Content::Map(fields),
                    },
                    None => return false,
                };
                return self.put(node);
            }
            _ => {}
        }
        true
    }

    fn syntax(&self, at: Position, message: &str, remedy: &str) {
        self.faults.add(at, FaultCode::Syntax, message, remedy);
    }

    fn decoration(&self, at: Position, anchor: usize, tagged: bool) {
        if anchor != 0 {
            self.syntax(
                at,
                "anchors are not allowed in packs",
                "write the value out where it is used",
            );
        }
        if tagged {
            self.syntax(
                at,
                "tags are not allowed in packs",
                "remove the tag; quote the value to make it text",
            );
        }
    }

    fn within_depth(&self, at: Position) -> bool {
        let fits = self.open.len() <= MAX_DEPTH;
        if !fits {
            self.faults.add(
                at,
                FaultCode::LimitExceeded,
                format!("nested deeper than {MAX_DEPTH} levels"),
                "make it flatter",
            );
        }
        fits
    }

    fn put(&mut self, node: Node) -> bool {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            self.faults.add(
                node.at,
                FaultCode::LimitExceeded,
                format!("more than {MAX_NODES} values in one file"),
                "split it",
            );
            return false;
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(_, items)) => items.push(node),
            Some(Open::Map { fields, seen, key, .. }) => match key.take() {
                None => *key = Some(key_of(&node, self.faults)),
                Some(key) => match seen.get(&key.name) {
                    Some(first) => self.faults.add(
                        key.at,
                        FaultCode::DuplicateKey,
                        format!("`{}` is here twice, first on line {}", key.name, first.line),
                        "keep one of them; a missing `-` or a wrong indent also reads like this",
                    ),
                    None => {
                        seen.insert(key.name.clone(), key.at);
                        fields.push((key, node));
                    }
                },
            },
        }
        true
    }
}

fn key_of(node: &Node, faults: &Faults) -> Key {
    let name = match &node.content {
        Content::Text(text) => text.clone(),
        Content::Integer(number) => number.to_string(),
        Content::Bool(value) => value.to_string(),
        other => {
            faults.add(
                node.at,
                FaultCode::WrongType,
                format!("a key is text, here it is {}", other.noun()),
                "quote the key",
            );
            format!("\u{0}{}:{}", node.at.line, node.at.column)
        }
    };
    Key { at: node.at, name }
}

/// The core schema of YAML 1.2, as far as packs use it: `null`, booleans, decimal integers, finite
/// floats. Everything else, `yes` and `0x1F` too, is text.
fn scalar(text: &str, style: ScalarStyle) -> Content {
    if style != ScalarStyle::Plain {
        return Content::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" => Content::Null,
        "true" => Content::Bool(true),
        "false" => Content::Bool(false),
        _ => number(text).unwrap_or_else(|| Content::Text(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Content> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        // A leading zero is an identifier (`007`, a version, a mode), not a number.
        let plain = digits == "0" || !digits.starts_with('0');
        return text.parse().ok().filter(|_| plain).map(Content::Integer);
    }
    let float = digits
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'-' | b'+'));
    text.parse::<f64>()
        .ok()
        .filter(|value| float && value.is_finite())
        .map(Content::Float)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults_of(text: &str) -> Vec<String> {
        let faults = Faults::of("f.yaml");
        read(text, &faults);
        faults
            .into_list()
            .iter()
            .map(|f| format!("{}:{} {}", f.at.line, f.at.column, f.code.as_str()))
            .collect()
    }

    #[test]
    fn every_duplicate_key_is_reported_not_only_the_first() {
        assert_eq!(
            faults_of("a: 1\na: 2\nb:\n  c: 1\n  c: 2\n"),
            ["2:1 duplicate_key", "5:3 duplicate_key"]
        );
    }

    #[test]
    fn what_hides_meaning_is_refused_with_its_place() {
        assert_eq!(faults_of("a: &x 1\nb: *x\n"), ["1:4 syntax", "2:4 syntax"]);
        assert_eq!(faults_of("a: !!str 1\n"), ["1:4 syntax"]);
        assert_eq!(faults_of("a: 1\n---\nb: 2\n"), ["2:1 syntax"]);
        assert_eq!(faults_of(""), ["1:1 syntax"]);
        assert_eq!(faults_of("a: 1\n b: 2\n").len(), 1);
    }

    #[test]
    fn scalars_are_what_they_look_like_and_quoted_ones_are_text() {
        let faults = Faults::of("f");
        let node = read(
            "a: 1\nb: '1'\nc: yes\nd: 1.5\ne: 007\nf: 1.2.3\ng:\nh: -3\ni: 0x1F\n",
            &faults,
        )
        .unwrap();
        assert_eq!(
            node.to_json(),
            json!({"a": 1, "b": "1", "c": "yes", "d": 1.5, "e": "007", "f": "1.2.3", "g": null, "h": -3, "i": "0x1F"})
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[ -~\n]{0,200}") {
            read(&text, &Faults::of("f"));
        }
    }
}
