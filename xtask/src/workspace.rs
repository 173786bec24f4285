//! Which crate uses which, as `cargo metadata` resolves it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::part::Part;

/// All crates by name. Versions of one crate are taken together: a rule is about names.
#[derive(Debug, Default)]
pub struct Graph {
    pub crates: BTreeMap<String, Crate>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Crate {
    /// Relative to the workspace; absent for crates of others.
    pub directory: Option<String>,
    /// In what ships and in its build.
    pub uses: BTreeSet<String>,
    /// In tests only.
    pub uses_in_tests: BTreeSet<String>,
    /// Everything that is compiled when this crate is built alone, where that was asked for. Among
    /// others a crate may get features, and with them dependencies, that it does not want itself.
    pub alone: Option<BTreeSet<String>>,
}

impl Graph {
    pub fn load(root: &Path) -> Result<Self> {
        let run = Command::new("cargo")
            .args(["metadata", "--format-version", "1", "--locked"])
            .current_dir(root)
            .output()
            .context("cannot run cargo metadata")?;
        ensure!(
            run.status.success(),
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&run.stderr)
        );
        let mut graph = Self::from_metadata(&run.stdout)?;
        for (name, krate) in &mut graph.crates {
            let part = krate.directory.as_deref().and_then(Part::of);
            if part.is_some_and(|part| part.is_restricted()) {
                krate.alone = Some(compiled_alone(root, name)?);
            }
        }
        Ok(graph)
    }

    fn from_metadata(json: &[u8]) -> Result<Self> {
        let metadata: Metadata = serde_json::from_slice(json).context("cannot read cargo metadata")?;
        let names: BTreeMap<&str, &str> = metadata
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package.name.as_str()))
            .collect();
        let mut graph = Self::default();
        for package in &metadata.packages {
            let directory = package.directory_in(&metadata);
            graph.crates.entry(package.name.clone()).or_default().directory = directory;
        }
        for node in &metadata.resolve.nodes {
            let Some(name) = names.get(node.id.as_str()) else {
                continue;
            };
            let user = graph.crates.entry((*name).to_owned()).or_default();
            for dependency in &node.deps {
                let Some(used) = names.get(dependency.pkg.as_str()) else {
                    continue;
                };
                let only_in_tests = dependency
                    .dep_kinds
                    .iter()
                    .all(|kind| kind.kind.as_deref() == Some("dev"));
                let set = if only_in_tests {
                    &mut user.uses_in_tests
                } else {
                    &mut user.uses
                };
                set.insert((*used).to_owned());
            }
        }
        Ok(graph)
    }

    /// Our own crates, with their directories.
    pub fn members(&self) -> impl Iterator<Item = (&str, &str, &Crate)> {
        self.crates
            .iter()
            .filter_map(|(name, krate)| Some((name.as_str(), krate.directory.as_deref()?, krate)))
    }

    /// The shortest chain of uses from one crate to the first of `targets`, both ends included.
    pub fn path_to_any(&self, start: &str, targets: &[&str]) -> Option<Vec<String>> {
        let alone = self.crates.get(start).and_then(|krate| krate.alone.as_ref());
        let compiled = |name: &str| alone.is_none_or(|alone| alone.contains(name));
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut waiting = VecDeque::from([start]);
        while let Some(current) = waiting.pop_front() {
            if current != start && targets.contains(&current) {
                let mut path = vec![current.to_owned()];
                let mut at = current;
                while let Some(before) = came_from.get(at) {
                    path.push((*before).to_owned());
                    at = before;
                }
                path.reverse();
                return Some(path);
            }
            let Some(krate) = self.crates.get(current) else {
                continue;
            };
            for used in &krate.uses {
                if used != start && compiled(used) && !came_from.contains_key(used.as_str()) {
                    came_from.insert(used, current);
                    waiting.push_back(used);
                }
            }
        }
        None
    }
}

fn compiled_alone(root: &Path, name: &str) -> Result<BTreeSet<String>> {
    let run = Command::new("cargo")
        .args([
            "tree",
            "--locked",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--package",
            name,
        ])
        .current_dir(root)
        .output()
        .context("cannot run cargo tree")?;
    ensure!(
        run.status.success(),
        "cargo tree failed: {}",
        String::from_utf8_lossy(&run.stderr)
    );
    let text = String::from_utf8(run.stdout).context("cannot read cargo tree")?;
    Ok(text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    workspace_root: String,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: String,
}

impl Package {
    fn directory_in(&self, metadata: &Metadata) -> Option<String> {
        if !metadata.workspace_members.contains(&self.id) {
            return None;
        }
        let directory = Path::new(&self.manifest_path)
            .parent()?
            .strip_prefix(&metadata.workspace_root)
            .ok()?;
        Some(directory.to_string_lossy().into_owned())
    }
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

#[cfg(test)]
pub mod seeded {
    //! Small workspaces for the tests of the checks.

    use super::{Crate, Graph};

    /// `(name, directory or "" for a crate of others, what it uses)`.
    pub fn graph(crates: &[(&str, &str, &[&str])]) -> Graph {
        let mut graph = Graph::default();
        for (name, directory, uses) in crates {
            let krate = Crate {
                directory: (!directory.is_empty()).then(|| (*directory).to_owned()),
                uses: uses.iter().map(|used| (*used).to_owned()).collect(),
                ..Crate::default()
            };
            graph.crates.insert((*name).to_owned(), krate);
        }
        graph
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "packages": [
            {"id": "a", "name": "ours", "manifest_path": "/w/libs/ours/Cargo.toml"},
            {"id": "b", "name": "theirs", "manifest_path": "/registry/theirs/Cargo.toml"},
            {"id": "c", "name": "for-tests", "manifest_path": "/registry/for-tests/Cargo.toml"}
        ],
        "workspace_members": ["a"],
        "workspace_root": "/w",
        "resolve": {"nodes": [
            {"id": "a", "deps": [
                {"pkg": "b", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                {"pkg": "c", "dep_kinds": [{"kind": "dev"}]}
            ]},
            {"id": "b", "deps": []}
        ]}
    }"#;

    #[test]
    fn tells_ours_from_theirs_and_tests_from_what_ships() {
        let graph = Graph::from_metadata(METADATA.as_bytes()).unwrap();
        let ours = &graph.crates["ours"];
        assert_eq!(ours.directory.as_deref(), Some("libs/ours"));
        assert!(ours.uses.contains("theirs") && ours.uses_in_tests.contains("for-tests"));
        assert_eq!(graph.crates["theirs"].directory, None);
    }

    #[test]
    fn a_dependency_that_only_others_ask_for_is_not_held_against_a_crate() {
        let mut graph = seeded::graph(&[("a", "a", &["b"]), ("b", "", &["bad"]), ("bad", "", &[])]);
        graph.crates.get_mut("a").unwrap().alone = Some(["a", "b"].map(str::to_owned).into());
        assert_eq!(graph.path_to_any("a", &["bad"]), None);
    }

    #[test]
    fn finds_the_shortest_chain() {
        let graph = seeded::graph(&[
            ("a", "a", &["b", "c"]),
            ("b", "", &["bad"]),
            ("c", "", &["d"]),
            ("d", "", &["bad"]),
            ("bad", "", &["a"]),
        ]);
        assert_eq!(graph.path_to_any("a", &["bad"]).unwrap(), ["a", "b", "bad"]);
        assert_eq!(graph.path_to_any("a", &["absent"]), None);
    }
}
