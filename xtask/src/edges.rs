//! Who calls whom, and what: `docs/edges.toml` is the manifest, the clients and their methods that crates
//! really use are the truth, and the OpenAPI documents say what can be called.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use walkdir::WalkDir;

use crate::{
    Violation,
    operations::{self, Operation, nameless},
    part::Part,
    workspace::Graph,
};

const MANIFEST: &str = "docs/edges.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    edge: Vec<Edge>,
}

/// One caller, one callee, and every operation of the callee's API that may be called.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edge {
    from: String,
    to: String,
    /// `METHOD /path`; `*` for people's clients, which may call everything.
    contract: Vec<String>,
    why: String,
}

type Pair = (String, String);

pub fn check(root: &Path, graph: &Graph) -> Result<Vec<Violation>> {
    let text = fs::read_to_string(root.join(MANIFEST)).with_context(|| format!("cannot read {MANIFEST}"))?;
    let manifest: Manifest = toml::from_str(&text).with_context(|| format!("cannot read {MANIFEST}"))?;
    let (used, mut found) = used_edges(graph, &|directory, client| mentions(&root.join(directory), client));
    found.extend(compare(&manifest, &used));
    let called = called_operations(root, graph)?;
    let direct = direct_operations(root, graph)?;
    for edge in &manifest.edge {
        let document = root.join(format!("openapi/{}-service.json", edge.to));
        found.extend(unknown_operations(edge, fs::read(&document).ok().as_deref()));
        let of_edge = called.get(&(edge.from.clone(), edge.to.clone()));
        let mut of_edge = of_edge.cloned().unwrap_or_default();
        // A path alone does not say whose it is; the contract does.
        let declared: BTreeSet<Operation> = edge.contract.iter().map(|operation| nameless(operation)).collect();
        let by_path = direct.get(&edge.from).into_iter().flatten();
        of_edge.extend(by_path.filter(|operation| declared.contains(*operation)).cloned());
        found.extend(compare_operations(edge, &of_edge));
    }
    found.sort();
    Ok(found)
}

/// The edges that crates have by using the client of another service; and clients not used at all.
fn used_edges(graph: &Graph, mentions: &dyn Fn(&str, &str) -> bool) -> (BTreeSet<Pair>, Vec<Violation>) {
    let mut edges = BTreeSet::new();
    let mut found = Vec::new();
    for (name, directory, krate) in graph.members() {
        let callers = callers(graph, name, directory);
        for client in &krate.uses {
            let Some(Part::Api(callee)) = part_of(graph, client) else {
                continue;
            };
            let outside = callers.iter().filter(|caller| **caller != callee);
            let pairs: Vec<Pair> = outside.map(|caller| (caller.clone(), callee.clone())).collect();
            if !pairs.is_empty() && !mentions(directory, client) {
                found.push(Violation::new(name, format!("depends on {client} and never uses it")));
                continue;
            }
            edges.extend(pairs);
        }
    }
    (edges, found)
}

/// What each edge's caller calls of its callee, by the methods of clients in its sources.
fn called_operations(root: &Path, graph: &Graph) -> Result<BTreeMap<Pair, BTreeSet<Operation>>> {
    let mut called: BTreeMap<Pair, BTreeSet<Operation>> = BTreeMap::new();
    for (name, directory, krate) in graph.members() {
        for client in &krate.uses {
            let Some(Part::Api(callee)) = part_of(graph, client) else {
                continue;
            };
            let Some(client) = graph.crates[client].directory.as_deref() else {
                continue;
            };
            let operations = operations::called(&root.join(directory), &root.join(client))?;
            for caller in callers(graph, name, directory)
                .into_iter()
                .filter(|name| *name != callee)
            {
                called
                    .entry((caller, callee.clone()))
                    .or_default()
                    .extend(operations.iter().cloned());
            }
        }
    }
    Ok(called)
}

/// What each caller calls by path.
fn direct_operations(root: &Path, graph: &Graph) -> Result<BTreeMap<String, BTreeSet<Operation>>> {
    let mut direct: BTreeMap<String, BTreeSet<Operation>> = BTreeMap::new();
    for (name, directory, _) in graph.members() {
        for caller in callers(graph, name, directory) {
            direct
                .entry(caller)
                .or_default()
                .extend(operations::direct(&root.join(directory))?);
        }
    }
    Ok(direct)
}

/// An operation that is called and not declared, or declared and not called.
fn compare_operations(edge: &Edge, called: &BTreeSet<Operation>) -> Vec<Violation> {
    if edge.contract == ["*"] {
        return Vec::new();
    }
    let label = format!("{} → {}", edge.from, edge.to);
    let declared: BTreeSet<Operation> = edge.contract.iter().map(|operation| nameless(operation)).collect();
    let undeclared = called
        .difference(&declared)
        .map(|operation| format!("{label}: {operation} is called, but not declared"));
    let unused = declared
        .difference(called)
        .map(|operation| format!("{label}: {operation} is declared, but no code calls it"));
    undeclared
        .chain(unused)
        .map(|text| Violation::new(MANIFEST, text))
        .collect()
}

/// On whose behalf a crate calls: an adapter calls for the service whose port it implements.
fn callers(graph: &Graph, name: &str, directory: &str) -> Vec<String> {
    match Part::of(directory) {
        Some(Part::Server(service) | Part::Ports(service) | Part::Domain(service)) => vec![service],
        Some(Part::Runner(_)) => vec![name.to_owned()],
        Some(Part::Adapter) => {
            let ports = graph.crates[name]
                .uses
                .iter()
                .filter_map(|used| match part_of(graph, used)? {
                    Part::Ports(service) => Some(service),
                    _ => None,
                });
            ports.collect()
        }
        Some(Part::Tool) if directory == "cli" => vec!["cli".to_owned()],
        _ => Vec::new(),
    }
}

fn part_of(graph: &Graph, name: &str) -> Option<Part> {
    Part::of(graph.crates.get(name)?.directory.as_deref()?)
}

fn mentions(directory: &Path, client: &str) -> bool {
    let path = format!("{}::", client.replace('-', "_"));
    let sources = WalkDir::new(directory.join("src")).into_iter().flatten();
    let mut rust = sources.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rs"));
    rust.any(|entry| fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(&path)))
}

fn compare(manifest: &Manifest, used: &BTreeSet<Pair>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut declared = BTreeSet::new();
    for edge in &manifest.edge {
        let pair = (edge.from.clone(), edge.to.clone());
        let label = format!("{} → {}", edge.from, edge.to);
        if edge.why.trim().is_empty() || edge.contract.is_empty() {
            found.push(Violation::new(
                MANIFEST,
                format!("{label} says no reason or no contract"),
            ));
        }
        if !used.contains(&pair) {
            found.push(Violation::new(
                MANIFEST,
                format!("{label} is declared, but no code uses it"),
            ));
        }
        if !declared.insert(pair) {
            found.push(Violation::new(MANIFEST, format!("{label} is declared twice")));
        }
    }
    for (from, to) in used.difference(&declared) {
        found.push(Violation::new(
            MANIFEST,
            format!("{from} → {to} is used by code, but not declared"),
        ));
    }
    if let Some(cycle) = cycle(&declared) {
        found.push(Violation::new(
            MANIFEST,
            format!("callers form a cycle: {}", cycle.join(" → ")),
        ));
    }
    found
}

fn cycle(edges: &BTreeSet<Pair>) -> Option<Vec<String>> {
    let mut targets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        targets.entry(from).or_default().push(to);
    }
    targets.keys().find_map(|start| walk(&targets, &mut vec![*start]))
}

fn walk<'a>(targets: &BTreeMap<&'a str, Vec<&'a str>>, path: &mut Vec<&'a str>) -> Option<Vec<String>> {
    let current = *path.last()?;
    for next in targets.get(current).into_iter().flatten() {
        let again = path.iter().position(|seen| seen == next);
        path.push(next);
        if let Some(start) = again {
            return Some(path[start..].iter().map(|name| (*name).to_owned()).collect());
        }
        if let Some(found) = walk(targets, path) {
            return Some(found);
        }
        path.pop();
    }
    None
}

fn unknown_operations(edge: &Edge, document: Option<&[u8]>) -> Vec<Violation> {
    if edge.contract == ["*"] {
        return Vec::new();
    }
    let label = format!("{} → {}", edge.from, edge.to);
    let document: Option<Value> = document.and_then(|bytes| serde_json::from_slice(bytes).ok());
    let Some(paths) = document.as_ref().and_then(|document| document.get("paths")) else {
        return vec![Violation::new(
            MANIFEST,
            format!("{label}: no OpenAPI document of {} can be read", edge.to),
        )];
    };
    let known = |operation: &str| {
        let (method, path) = operation.split_once(' ')?;
        paths.get(path)?.get(method.to_lowercase())
    };
    let unknown = edge.contract.iter().filter(|operation| known(operation).is_none());
    unknown
        .map(|operation| Violation::new(MANIFEST, format!("{label}: the callee has no {operation}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::seeded::graph;

    fn edge(from: &str, to: &str) -> Edge {
        Edge {
            from: from.into(),
            to: to.into(),
            contract: vec!["GET /v1/things".into()],
            why: "because".into(),
        }
    }

    fn pairs(edges: &[(&str, &str)]) -> BTreeSet<Pair> {
        edges
            .iter()
            .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
            .collect()
    }

    fn told(declared: Vec<Edge>, used: &[(&str, &str)]) -> Vec<String> {
        compare(&Manifest { edge: declared }, &pairs(used))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn an_edge_both_declared_and_used_passes() {
        assert_eq!(told(vec![edge("a", "b")], &[("a", "b")]), Vec::<String>::new());
    }

    #[test]
    fn an_undeclared_edge_and_an_unused_one_are_told() {
        assert!(told(vec![], &[("a", "b")])[0].contains("a → b is used by code, but not declared"));
        assert!(told(vec![edge("a", "b")], &[])[0].contains("a → b is declared, but no code uses it"));
    }

    #[test]
    fn a_cycle_is_told_with_its_members() {
        let edges = [("a", "b"), ("b", "c"), ("c", "a")];
        let told = told(edges.map(|(from, to)| edge(from, to)).into(), &edges);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("a → b → c → a"), "{told:?}");
    }

    #[test]
    fn an_edge_needs_a_reason_and_is_declared_once() {
        let silent = Edge {
            why: " ".into(),
            ..edge("a", "b")
        };
        assert!(told(vec![silent], &[("a", "b")])[0].contains("says no reason"));
        assert!(told(vec![edge("a", "b"), edge("a", "b")], &[("a", "b")])[0].contains("declared twice"));
    }

    #[test]
    fn edges_are_read_from_clients_that_the_code_uses() {
        let graph = graph(&[
            ("a-server", "a-service/server", &["b-api", "a-api"]),
            ("a-api", "a-service/api", &[]),
            ("b-api", "b-service/api", &[]),
            ("a-ports", "a-service/ports", &[]),
            ("feed", "adapters/feed", &["a-ports", "c-api"]),
            ("c-api", "c-service/api", &[]),
            ("b-runner", "b-service/runner", &["b-api"]),
            ("platform-cli", "cli", &["c-api"]),
        ]);
        let (used, found) = used_edges(&graph, &|_, _| true);
        assert_eq!(used, pairs(&[("a", "b"), ("a", "c"), ("b-runner", "b"), ("cli", "c")]));
        assert_eq!(found, []);
        let (used, found) = used_edges(&graph, &|_, client| client != "c-api");
        assert_eq!(used, pairs(&[("a", "b"), ("b-runner", "b")]));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn an_operation_is_declared_if_and_only_if_it_is_called() {
        let called = |operations: &[&str]| operations.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(compare_operations(&edge("a", "b"), &called(&["GET /v1/things"])), []);
        let told = compare_operations(&edge("a", "b"), &called(&["PUT /v1/things/{}"]));
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert!(
            told[0].contains("PUT /v1/things/{} is called, but not declared"),
            "{told:?}"
        );
        assert!(
            told[1].contains("GET /v1/things is declared, but no code calls it"),
            "{told:?}"
        );
    }

    #[test]
    fn a_contract_names_operations_that_the_callee_has() {
        let document = br#"{"paths": {"/v1/things": {"get": {}}}}"#;
        assert_eq!(unknown_operations(&edge("a", "b"), Some(document)), []);
        let wrong = Edge {
            contract: vec!["POST /v1/things".into(), "GET /v1/none".into()],
            ..edge("a", "b")
        };
        assert_eq!(unknown_operations(&wrong, Some(document)).len(), 2);
        assert_eq!(unknown_operations(&edge("a", "b"), None).len(), 1);
        let people = Edge {
            contract: vec!["*".into()],
            ..edge("cli", "b")
        };
        assert_eq!(unknown_operations(&people, None), []);
    }
}
