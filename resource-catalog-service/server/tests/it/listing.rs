use contracts::LifecycleStatus;
use kernel::Selector;
use kernel::selector::Term;
use proptest::prelude::{Just, Strategy, any};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use resource_catalog_api::{ApplyResource, Client, ListResourcesQuery, ObserveCapability, Resource};
use serde_json::json;

use crate::harness::{Catalog, dotted, evidence, id, map, node, put};

async fn names(client: &Client, query: ListResourcesQuery) -> Vec<String> {
    let page = client.resources(&query).await.unwrap();
    page.items.iter().map(|r| r.resource_id.name().to_owned()).collect()
}

pub async fn observe(client: &Client, name: &str, capability: &str, version: &str) {
    let seen = ObserveCapability {
        attributes: map(json!({"version": version})),
        evidence: vec![evidence(capability, contracts::EvidenceResult::Passed)],
    };
    client
        .observe_capability(&id(name), &dotted(capability), &seen)
        .await
        .unwrap();
}

async fn populate(catalog: &Catalog) -> Client {
    catalog.define().await;
    let operator = catalog.operator();
    let gpu = resource_catalog_api::ApplyResourceType {
        parent: Some(dotted("compute.node")),
        description: String::new(),
        id_prefix: None,
        desired_state_schema: None,
        observed_state_schema: None,
        lifecycle_transitions: None,
        edges: None,
    };
    operator
        .apply_resource_type(&dotted("compute.node.gpu"), &gpu, None)
        .await
        .unwrap();
    for (name, rack, environment, resource_type) in [
        ("node/a", "r1", "prod", "compute.node"),
        ("node/b", "r2", "prod", "compute.node"),
        ("node/c", "r2", "demo", "compute.node.gpu"),
        ("rack/r1", "r1", "prod", "topology.rack"),
    ] {
        let asked = ApplyResource {
            resource_type: dotted(resource_type),
            environment: Some(environment.into()),
            labels: [("rack".to_owned(), rack.to_owned())].into(),
            desired_state: serde_json::Map::new(),
            lifecycle_status: Some(if name == "node/b" {
                LifecycleStatus::Maintenance
            } else {
                LifecycleStatus::Running
            }),
            ..node()
        };
        put(&operator, name, &asked).await;
    }
    observe(&operator, "node/a", "os.linux.debian", "12").await;
    observe(&operator, "node/b", "os.linux", "11.7").await;
    operator
}

#[tokio::test]
async fn every_condition_selects_as_it_reads() {
    let catalog = Catalog::start().await;
    let operator = populate(&catalog).await;
    let q = ListResourcesQuery::default;
    let cases: Vec<(ListResourcesQuery, &[&str])> = vec![
        (q(), &["a", "b", "c", "r1"]),
        (
            ListResourcesQuery {
                resource_type: Some(dotted("compute.node")),
                ..q()
            },
            &["a", "b", "c"],
        ),
        (
            ListResourcesQuery {
                resource_type: Some(dotted("compute.node.gpu")),
                ..q()
            },
            &["c"],
        ),
        (
            ListResourcesQuery {
                environment: Some("prod".into()),
                ..q()
            },
            &["a", "b", "r1"],
        ),
        (
            ListResourcesQuery {
                lifecycle: Some(LifecycleStatus::Maintenance),
                ..q()
            },
            &["b"],
        ),
        (
            ListResourcesQuery {
                health: Some(contracts::HealthStatus::Healthy),
                ..q()
            },
            &[],
        ),
        (
            ListResourcesQuery {
                selector: Some("rack=r2".into()),
                ..q()
            },
            &["b", "c"],
        ),
        (
            ListResourcesQuery {
                selector: Some("rack!=r2".into()),
                ..q()
            },
            &["a", "r1"],
        ),
        (
            ListResourcesQuery {
                selector: Some("rack in (r1,r9)".into()),
                ..q()
            },
            &["a", "r1"],
        ),
        (
            ListResourcesQuery {
                selector: Some("rack=r1,rack=r2".into()),
                ..q()
            },
            &[],
        ),
        (
            ListResourcesQuery {
                selector: Some("rack,!zone".into()),
                ..q()
            },
            &["a", "b", "c", "r1"],
        ),
        (
            ListResourcesQuery {
                selector: Some("zone".into()),
                ..q()
            },
            &[],
        ),
        (
            ListResourcesQuery {
                capability: Some(dotted("os.linux")),
                ..q()
            },
            &["a", "b"],
        ),
        (
            ListResourcesQuery {
                capability: Some(dotted("os.linux.debian")),
                ..q()
            },
            &["a"],
        ),
        (
            ListResourcesQuery {
                capability: Some(dotted("os.linux")),
                capability_version: Some(">=12".into()),
                ..q()
            },
            &["a"],
        ),
        (
            ListResourcesQuery {
                capability: Some(dotted("os.linux")),
                capability_version: Some(">=11, <13".into()),
                selector: Some("rack=r2".into()),
                ..q()
            },
            &["b"],
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(names(&operator, query.clone()).await, expected, "{query:?}");
    }
}

#[tokio::test]
async fn pages_are_stable_while_others_write() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    for n in 0..9 {
        put(&operator, &format!("node/n{n}"), &node()).await;
    }
    let mut query = ListResourcesQuery {
        limit: Some(2),
        environment: Some("demo".into()),
        ..ListResourcesQuery::default()
    };
    let mut seen = Vec::new();
    let mut revisions = Vec::new();
    loop {
        let page = operator.resources(&query).await.unwrap();
        seen.extend(page.items.iter().map(|r| r.resource_id.name().to_owned()));
        revisions.push(page.revision);
        // Comes before what was read, so it is on no later page.
        put(&operator, &format!("node/a{}", seen.len()), &node()).await;
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => break,
        }
    }
    let expected: Vec<String> = (0..9).map(|n| format!("n{n}")).collect();
    assert_eq!(seen, expected);
    assert!(
        revisions.iter().all(|r| *r == revisions[0]),
        "a list has one revision: {revisions:?}"
    );
    let other = ListResourcesQuery {
        environment: None,
        cursor: query.cursor.clone(),
        ..query
    };
    if other.cursor.is_some() {
        let refused = operator.resources(&other).await.unwrap_err();
        assert_eq!(refused.status(), Some(422), "a cursor is of its query only");
    }
}

#[tokio::test]
async fn a_wrong_selector_is_refused_with_its_position() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    let query = ListResourcesQuery {
        selector: Some("a=b,c in x".into()),
        ..ListResourcesQuery::default()
    };
    let refused = operator.resources(&query).await.unwrap_err();
    let problem = refused.problem().unwrap();
    assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, "/selector"));
    assert_eq!(problem.extensions["position"], json!(9));
    for query in [
        ListResourcesQuery {
            resource_type: Some(dotted("no.such")),
            ..ListResourcesQuery::default()
        },
        ListResourcesQuery {
            capability_version: Some(">=1".into()),
            ..ListResourcesQuery::default()
        },
        ListResourcesQuery {
            capability: Some(dotted("x")),
            capability_version: Some("=>1".into()),
            ..ListResourcesQuery::default()
        },
    ] {
        assert_eq!(
            operator.resources(&query).await.unwrap_err().status(),
            Some(422),
            "{query:?}"
        );
    }
}

fn terms() -> impl Strategy<Value = Term> {
    let key = || proptest::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned);
    let values = || {
        proptest::sample::subsequence(vec!["", "x", "y", "z"], 1..4)
            .prop_map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    proptest::prop_oneof![
        (key(), values()).prop_map(|(key, values)| Term::In { key, values }),
        (key(), values()).prop_map(|(key, values)| Term::NotIn { key, values }),
        key().prop_map(|key| Term::Exists { key }),
        key().prop_map(|key| Term::Absent { key }),
    ]
}

fn queries() -> impl Strategy<Value = (Selector, Option<bool>, Option<bool>)> {
    let selector = proptest::collection::vec(terms(), 0..4).prop_map(|terms| Selector { terms });
    let maybe = || proptest::prop_oneof![Just(None), any::<bool>().prop_map(Some)];
    (selector, maybe(), maybe())
}

/// The page that SQL selects is the one that the selector's own rules select, whatever the selector.
#[tokio::test]
async fn what_sql_selects_is_what_the_rules_select() {
    let catalog = Catalog::start().await;
    let operator = catalog.operator();
    for n in 0..24_u32 {
        let values = ["", "x", "y", "z"];
        let mut asked = node();
        asked.labels.clear();
        for (key, digit) in [("a", n % 5), ("b", n / 5 % 5), ("c", n / 2 % 5)] {
            if let Some(value) = values.get(digit as usize) {
                asked.labels.insert(key.into(), (*value).into());
            }
        }
        asked.environment = (n % 3 != 0).then(|| "demo".to_owned());
        asked.lifecycle_status = (n % 2 == 0).then_some(LifecycleStatus::Running);
        put(&operator, &format!("node/n{n:02}"), &asked).await;
    }
    let all = operator.resources(&ListResourcesQuery::default()).await.unwrap().items;
    let mut runner = TestRunner::deterministic();
    for _ in 0..150 {
        let (selector, environment, running) = queries().new_tree(&mut runner).unwrap().current();
        let query = ListResourcesQuery {
            selector: Some(selector.to_string()),
            environment: environment.map(|demo| if demo { "demo" } else { "none" }.to_owned()),
            lifecycle: running.map(|running| {
                if running {
                    LifecycleStatus::Running
                } else {
                    LifecycleStatus::Planned
                }
            }),
            ..ListResourcesQuery::default()
        };
        let selected = |r: &&Resource| {
            selector.matches(&r.labels)
                && query
                    .environment
                    .as_ref()
                    .is_none_or(|e| r.environment.as_ref() == Some(e))
                && query.lifecycle.is_none_or(|l| r.lifecycle_status == l)
        };
        let expected: Vec<&str> = all.iter().filter(selected).map(|r| r.resource_id.name()).collect();
        assert_eq!(names(&operator, query.clone()).await, expected, "{query:?}");
    }
}
