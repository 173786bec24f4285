//! The dependency law: dependencies point inwards, services meet through clients only, and third
//! parties stay behind the part that wraps them.

use crate::{Violation, part::Part, workspace::Graph};

/// What makes a crate impure, however indirectly it comes.
const IMPURE: [&str; 9] = [
    "tokio",
    "sqlx",
    "sqlx-core",
    "tokio-postgres",
    "deadpool-postgres",
    "axum",
    "hyper",
    "reqwest",
    "mio",
];
/// What a caller of a service must not have to compile.
const SERVING: [&str; 4] = ["axum", "sqlx", "tokio-postgres", "deadpool-postgres"];
/// One third-party system each: an adapter wraps at most one, and nobody else names any.
const SYSTEMS: [&str; 9] = [
    "age",
    "bollard",
    "kube",
    "object_store",
    "rdkafka",
    "temporalio-client",
    "temporalio-sdk",
    "vaultrs",
    "aws-sdk-s3",
];

pub fn check(graph: &Graph) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, directory, _) in graph.members() {
        match Part::of(directory) {
            None => found.push(Violation::new(
                directory,
                "this directory has no place in the architecture",
            )),
            Some(part) => {
                found.extend(direct(graph, name, &part));
                found.extend(indirect(graph, name, &part));
                found.extend(systems(graph, name, &part));
            }
        }
    }
    found.sort();
    found
}

fn direct(graph: &Graph, name: &str, part: &Part) -> Vec<Violation> {
    let krate = &graph.crates[name];
    let mut found = Vec::new();
    for used in &krate.uses {
        if let Some(other) = part_of(graph, used)
            && !part.may_use(&other, used)
        {
            found.push(Violation::new(
                name,
                format!("{part:?} may not use {used}, which is {other:?}"),
            ));
        }
    }
    for used in krate.uses_in_tests.iter().filter(|used| *used != name) {
        if let Some(other) = part_of(graph, used)
            && !part.tests_may_use(&other, used)
        {
            found.push(Violation::new(
                name,
                format!("tests of {part:?} may not use {used}, which is {other:?}"),
            ));
        }
    }
    found
}

fn indirect(graph: &Graph, name: &str, part: &Part) -> Option<Violation> {
    let (forbidden, why): (&[&str], _) = if part.is_pure() {
        (&IMPURE, "must stay pure")
    } else if matches!(part, Part::Api(_) | Part::Ports(_)) {
        (&SERVING, "must compile without servers and databases")
    } else {
        return None;
    };
    let path = graph.path_to_any(name, forbidden)?;
    Some(Violation::new(
        name,
        format!("{part:?} {why}, but: {}", path.join(" → ")),
    ))
}

fn systems(graph: &Graph, name: &str, part: &Part) -> Option<Violation> {
    let krate = &graph.crates[name];
    let named: Vec<&str> = SYSTEMS
        .into_iter()
        .filter(|system| krate.uses.contains(*system))
        .collect();
    let allowed = if *part == Part::Adapter { 1 } else { 0 };
    // Two crates of one system count as one.
    let mut distinct: Vec<&str> = named.iter().filter_map(|system| system.split('-').next()).collect();
    distinct.dedup();
    (distinct.len() > allowed).then(|| {
        Violation::new(
            name,
            format!("{part:?} may name {allowed} third-party systems, not {named:?}"),
        )
    })
}

fn part_of(graph: &Graph, name: &str) -> Option<Part> {
    Part::of(graph.crates.get(name)?.directory.as_deref()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::seeded::graph;

    fn told(crates: &[(&str, &str, &[&str])]) -> Vec<String> {
        check(&graph(crates)).iter().map(ToString::to_string).collect()
    }

    /// Exactly one violation, and it holds all of these words.
    fn refuses(crates: &[(&str, &str, &[&str])], words: &[&str]) {
        let told = told(crates);
        assert_eq!(told.len(), 1, "{told:?}");
        for word in words {
            assert!(told[0].contains(word), "{told:?} lacks {word}");
        }
    }

    #[test]
    fn a_lawful_workspace_passes() {
        let lawful: &[(&str, &str, &[&str])] = &[
            ("kernel", "libs/kernel", &["serde"]),
            ("contracts", "contracts", &["kernel"]),
            ("a-domain", "a-service/domain", &["contracts", "kernel"]),
            ("a-ports", "a-service/ports", &["a-domain", "tokio"]),
            ("a-api", "a-service/api", &["contracts", "client-kit"]),
            ("client-kit", "libs/client-kit", &["reqwest"]),
            (
                "a-server",
                "a-service/server",
                &["a-api", "a-domain", "b-api", "sqlx", "a-ports"],
            ),
            ("b-api", "b-service/api", &["contracts"]),
            ("secrets-age", "adapters/secrets-age", &["a-ports", "age"]),
            ("cli", "cli", &["a-server", "secrets-age", "b-api"]),
            ("reqwest", "", &["tokio"]),
        ];
        assert_eq!(told(lawful), Vec::<String>::new());
    }

    #[test]
    fn a_domain_that_reaches_a_runtime_is_told_with_the_way_there() {
        refuses(
            &[
                ("a-domain", "a-service/domain", &["jsonschema"]),
                ("jsonschema", "", &["tokio"]),
                ("tokio", "", &[]),
            ],
            &["a-domain", "a-domain → jsonschema → tokio"],
        );
    }

    #[test]
    fn a_server_may_not_use_another_services_server_or_domain() {
        refuses(
            &[
                ("a-server", "a-service/server", &["b-server"]),
                ("b-server", "b-service/server", &[]),
            ],
            &["a-server", "b-server"],
        );
        refuses(
            &[
                ("a-server", "a-service/server", &["b-domain"]),
                ("b-domain", "b-service/domain", &[]),
            ],
            &["a-server", "b-domain"],
        );
    }

    #[test]
    fn only_tools_name_adapters() {
        refuses(
            &[
                ("a-server", "a-service/server", &["secrets-age"]),
                ("secrets-age", "adapters/secrets-age", &[]),
            ],
            &["a-server", "secrets-age"],
        );
    }

    #[test]
    fn a_servers_tests_may_name_adapters_but_not_other_servers() {
        let mut seeded = graph(&[
            ("a-server", "a-service/server", &[]),
            ("b-server", "b-service/server", &[]),
            ("secrets-age", "adapters/secrets-age", &[]),
        ]);
        let server = seeded.crates.get_mut("a-server").unwrap();
        server.uses_in_tests = ["b-server", "secrets-age"].map(str::to_owned).into();
        let told = check(&seeded);
        assert_eq!(told.len(), 1);
        assert!(told[0].what.contains("b-server"));
    }

    #[test]
    fn an_api_crate_compiles_without_servers() {
        refuses(
            &[
                ("a-api", "a-service/api", &["framework"]),
                ("framework", "", &["axum"]),
                ("axum", "", &[]),
            ],
            &["a-api → framework → axum"],
        );
    }

    #[test]
    fn an_adapter_wraps_one_system_and_uses_no_server_and_no_other_adapter() {
        refuses(
            &[("both", "adapters/both", &["age", "rdkafka"])],
            &["both", "age", "rdkafka"],
        );
        refuses(
            &[("one", "adapters/one", &["two"]), ("two", "adapters/two", &[])],
            &["one", "two"],
        );
        refuses(
            &[("a-server", "a-service/server", &["vaultrs"])],
            &["a-server", "vaultrs"],
        );
    }

    #[test]
    fn a_library_knows_no_service_and_a_stray_directory_has_no_place() {
        refuses(
            &[("outbox", "libs/outbox", &["a-api"]), ("a-api", "a-service/api", &[])],
            &["outbox", "a-api"],
        );
        refuses(&[("stray", "stray", &[])], &["stray"]);
    }
}
