//! Reading `platform apply -f`: YAML documents with `kind`, `name` and `spec`, every fault with its
//! file, line and column, before anything is sent.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Value};

use crate::error::CliError;

/// What a document describes. The order is the order in which documents are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    ResourceType,
    CapabilityDefinition,
    Resource,
    CommandPolicy,
}

impl Kind {
    const WORDS: [(&'static str, Self); 4] = [
        ("ResourceType", Self::ResourceType),
        ("CapabilityDefinition", Self::CapabilityDefinition),
        ("Resource", Self::Resource),
        ("CommandPolicy", Self::CommandPolicy),
    ];

    /// The word as written in files.
    pub fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(word, _)| word)
    }
}

/// One document.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub kind: Kind,
    pub name: String,
    pub spec: Value,
    /// Where `spec`'s fields stand, by JSON Pointer into the request body.
    places: HashMap<String, (usize, usize)>,
    file: PathBuf,
    line: usize,
}

impl Manifest {
    /// `FILE:LINE:COLUMN` of what `pointer` names in the body, or of the nearest thing around it.
    pub fn place_of(&self, pointer: &str) -> String {
        let mut at = pointer;
        loop {
            if let Some((line, column)) = self.places.get(at) {
                return format!("{}:{line}:{column}", self.file.display());
            }
            match at.rfind('/') {
                Some(cut) => at = &at[..cut],
                None => return format!("{}:{}", self.file.display(), self.line),
            }
        }
    }
}

/// Reads every document of the files, and of the `*.yaml` and `*.yml` files of the directories.
///
/// # Errors
/// All faults of all files at once.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Manifest>, CliError> {
    let mut error = CliError::usage("the files cannot be applied; nothing was sent");
    let mut manifests = Vec::new();
    for file in expand(paths)? {
        match std::fs::read_to_string(&file) {
            Ok(text) => read_text(&file, &text, &mut manifests, &mut error),
            Err(fault) => error = error.fault(file.display().to_string(), format!("cannot be read: {fault}")),
        }
    }
    if !error.faults.is_empty() {
        return Err(error.in_order());
    }
    if manifests.is_empty() {
        return Err(CliError::usage("there is nothing to apply in these files"));
    }
    manifests.sort_by_key(|manifest| manifest.kind);
    Ok(manifests)
}

fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let walk = walkdir::WalkDir::new(path).sort_by_file_name();
        let inside = walk
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file());
        let yaml = |p: &Path| {
            p.extension()
                .is_some_and(|extension| extension == "yaml" || extension == "yml")
        };
        let before = files.len();
        files.extend(inside.map(walkdir::DirEntry::into_path).filter(|p| yaml(p)));
        if files.len() == before {
            return Err(CliError::usage(format!("{} holds no .yaml file", path.display())));
        }
    }
    Ok(files)
}

fn read_text(file: &Path, text: &str, manifests: &mut Vec<Manifest>, error: &mut CliError) {
    let mut fault = |line: usize, column: usize, problem: String| {
        error.faults.push(crate::error::Fault {
            place: format!("{}:{line}:{column}", file.display()),
            problem,
        });
    };
    let documents = match MarkedYaml::load_from_str(text) {
        Ok(documents) => documents,
        Err(scan) => {
            return fault(
                scan.marker().line(),
                scan.marker().col() + 1,
                format!("this is not YAML: {}", scan.info()),
            );
        }
    };
    for document in &documents {
        if matches!(document.data, YamlData::Value(Scalar::Null)) {
            continue;
        }
        if let Some(manifest) = read_document(file, document, &mut fault) {
            manifests.push(manifest);
        }
    }
}

fn read_document(
    file: &Path,
    document: &MarkedYaml<'_>,
    fault: &mut impl FnMut(usize, usize, String),
) -> Option<Manifest> {
    let (line, column) = place(document);
    let mut places = HashMap::new();
    let Value::Object(mut fields) = to_json(document, &mut String::new(), &mut places, fault) else {
        fault(line, column, "a document is a mapping with kind, name and spec".into());
        return None;
    };
    let known = ["kind", "name", "spec"];
    for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
        let (line, column) = places.get(&format!("/{key}")).copied().unwrap_or((line, column));
        fault(
            line,
            column,
            format!("unknown field {key:?}; a document has kind, name and spec"),
        );
    }
    let mut text = |field: &str| match fields.remove(field) {
        Some(Value::String(text)) => Some(text),
        Some(_) => {
            let (line, column) = places.get(&format!("/{field}")).copied().unwrap_or((line, column));
            fault(line, column, format!("{field} is a word"));
            None
        }
        None => {
            fault(line, column, format!("{field} is missing"));
            None
        }
    };
    let (kind, name) = (text("kind"), text("name"));
    let spec = fields.remove("spec").unwrap_or_else(|| Value::Object(Map::new()));
    let kind = kind.and_then(|word| {
        let found = Kind::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, kind)| *kind);
        if found.is_none() {
            let (line, column) = places.get("/kind").copied().unwrap_or((line, column));
            fault(
                line,
                column,
                format!(
                    "unknown kind {word:?}: one of {}",
                    Kind::WORDS.map(|(word, _)| word).join(", ")
                ),
            );
        }
        found
    })?;
    let places = places
        .into_iter()
        .filter_map(|(pointer, at)| Some((pointer.strip_prefix("/spec")?.to_owned(), at)));
    Some(Manifest {
        kind,
        name: name?,
        spec,
        places: places.collect(),
        file: file.to_owned(),
        line,
    })
}

fn place(node: &MarkedYaml<'_>) -> (usize, usize) {
    (node.span.start.line(), node.span.start.col() + 1)
}

fn to_json(
    node: &MarkedYaml<'_>,
    pointer: &mut String,
    places: &mut HashMap<String, (usize, usize)>,
    fault: &mut impl FnMut(usize, usize, String),
) -> Value {
    let (line, column) = place(node);
    places.insert(pointer.clone(), (line, column));
    let length = pointer.len();
    match &node.data {
        YamlData::Value(Scalar::Null) => Value::Null,
        YamlData::Value(Scalar::Boolean(value)) => Value::Bool(*value),
        YamlData::Value(Scalar::Integer(value)) => Value::from(*value),
        YamlData::Value(Scalar::FloatingPoint(value)) => Value::from(value.into_inner()),
        YamlData::Value(Scalar::String(text)) => Value::from(text.as_ref()),
        YamlData::Sequence(items) => {
            let mut values = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                values.push(to_json(item, pointer, places, fault));
                pointer.truncate(length);
            }
            Value::Array(values)
        }
        YamlData::Mapping(entries) => {
            let mut fields = Map::new();
            for (key, item) in entries {
                let YamlData::Value(Scalar::String(name)) = &key.data else {
                    let (line, column) = place(key);
                    fault(line, column, "a key is a word; quote it to make it one".into());
                    continue;
                };
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                let value = to_json(item, pointer, places, fault);
                places.insert(pointer.clone(), place(key));
                fields.insert(name.to_string(), value);
                pointer.truncate(length);
            }
            Value::Object(fields)
        }
        _ => {
            fault(
                line,
                column,
                "tags, anchors and aliases are not used here; write the value out".into(),
            );
            Value::Null
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Manifest>, CliError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        std::fs::write(&file, text).unwrap();
        read_all(&[directory.path().to_owned()])
    }

    #[test]
    fn documents_are_applied_types_first_and_know_their_places() {
        let text = "kind: Resource\nname: node/a\nspec:\n  labels:\n    a: b\n---\nkind: ResourceType\nname: x.y\n";
        let manifests = read(text).unwrap();
        assert_eq!(
            manifests.iter().map(|m| m.kind).collect::<Vec<_>>(),
            [Kind::ResourceType, Kind::Resource]
        );
        assert!(manifests[1].place_of("/labels/a").ends_with("a.yaml:5:5"));
        assert!(manifests[1].place_of("/labels/missing").ends_with("a.yaml:4:3"));
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let error = read("kind: Nothing\nnam: x\n---\nkind: Resource\nname: 3\nspec: {}\n").unwrap_err();
        let places: Vec<&str> = error
            .faults
            .iter()
            .map(|f| f.place.rsplit("a.yaml").next().unwrap())
            .collect();
        assert_eq!(places, [":1:1", ":1:1", ":2:1", ":5:1"], "{error}");
    }

    #[test]
    fn duplicate_keys_are_refused() {
        assert!(read("kind: Resource\nkind: Resource\nname: node/a\n").is_err());
    }
}
