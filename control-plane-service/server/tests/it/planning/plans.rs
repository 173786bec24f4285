use control_plane_plan::PlanDocument;
use control_plane_planning::{Candidate, Capability, pin_of};
use control_plane_server::planner::Planner;
use identity::Role;
use kernel::id::{OrganizationId, PlanId};
use resource_catalog_api::{PinInputs, Resource};
use serde_json::json;

use super::harness::{Harness, TEMPLATE, archive, host, rack};

#[tokio::test]
async fn a_preview_is_made_and_kept_with_the_catalog_switched_off() {
    let harness = Harness::ready().await;
    harness.catalog.with(|world| world.silent = true);
    let preview = harness.client().preview(&harness.request(), None).await.unwrap();
    let plan = preview.plan.clone().unwrap();
    let bound: Vec<String> = plan.slots[0]
        .resources
        .iter()
        .map(|r| r.resource_id.to_string())
        .collect();
    assert_eq!(bound, ["node/web-a", "node/web-b", "node/web-c"]);
    assert_eq!(preview.digest, Some(PlanDocument::seal(plan).unwrap().digest()));
    assert_eq!(preview.advice.freshness.revision, 6);
    assert_eq!(preview.advice.slots[0].candidates_considered, 3);
    let kept = harness.client().plan(preview.id).await.unwrap();
    assert_eq!(kept, preview);
    let again = harness.client().preview(&harness.request(), None).await.unwrap();
    assert_eq!(again.digest, preview.digest, "equal inputs give equal plans");
    assert_ne!(again.id, preview.id);
}

#[tokio::test]
async fn an_unsatisfiable_request_is_explained_candidate_by_candidate() {
    let harness = Harness::ready().await;
    let mut old = host("web-b", "b", 2);
    old["provided_capabilities"][0]["attributes"]["version"] = json!("5.10");
    let mut away = host("web-c", "c", 2);
    away["environment"] = json!("prod");
    let mut bare = host("web-d", "d", 1);
    bare["provided_capabilities"] = json!([]);
    for state in [old, away, bare] {
        harness.catalog.tell(harness.organization, state);
    }
    harness.catch_up().await;
    let preview = harness.client().preview(&harness.request(), None).await.unwrap();
    assert!(!preview.satisfiable && preview.plan.is_none() && preview.digest.is_none());
    let slot = &preview.advice.slots[0];
    let told: Vec<(String, &str)> = slot
        .refusals
        .iter()
        .map(|r| (r.resource_id.to_string(), r.constraint.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("node/web-b".to_owned(), "capability os.linux >=6"),
            ("node/web-c".to_owned(), "environment demo"),
            ("node/web-d".to_owned(), "capability os.linux >=6"),
        ]
    );
    assert_eq!(slot.candidates_considered, 4);
    assert!(
        slot.remedy
            .as_ref()
            .unwrap()
            .starts_with("node/web-b: provide os.linux >=6 on it")
    );
    let kept = harness.client().plan(preview.id).await.unwrap();
    assert_eq!(kept.advice, preview.advice);
    let refused = harness
        .app
        .planner
        .stored(harness.organization, preview.id)
        .await
        .unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (422, "plan_unsatisfiable"));
}

#[tokio::test]
async fn a_large_inventory_is_counted_and_only_a_part_of_it_loaded() {
    let harness = Harness::new().await;
    harness
        .client()
        .push_pack(archive("1.0.0", TEMPLATE), "first")
        .await
        .unwrap();
    harness.catalog.with(|world| {
        world.revision = 1;
        for n in 0..1_500 {
            let mut state = host(&format!("h{n:04}"), &format!("r{}", n / 700), 1);
            if n % 2 == 1 {
                state["environment"] = json!("prod");
            }
            world.resources.push(state);
        }
        world.resources.extend((0..3).map(|n| rack(&format!("r{n}"))));
    });
    harness.catch_up().await;
    let preview = harness.client().preview(&harness.request(), None).await.unwrap();
    // The third rack's first host is far behind the first candidates that are loaded.
    let plan = preview.plan.unwrap();
    let bound: Vec<String> = plan.slots[0]
        .resources
        .iter()
        .map(|r| r.resource_id.to_string())
        .collect();
    assert_eq!(bound, ["node/h0000", "node/h0700", "node/h1400"]);
    let slot = &preview.advice.slots[0];
    assert_eq!((slot.candidates_considered, slot.refusals.len()), (1_500, 100));
    assert_eq!(slot.refused_by, [("environment demo".to_owned(), 750)]);
}

#[tokio::test]
async fn a_repeated_preview_gives_the_first_one_and_bad_ones_say_where() {
    let harness = Harness::ready().await;
    let stranger = harness.client_of(OrganizationId::new_v7(), Role::Admin);
    let preview = harness.client().preview(&harness.request(), None).await.unwrap();
    assert_eq!(stranger.plan(preview.id).await.unwrap_err().status(), Some(404));
    assert_eq!(
        harness.client().plan(PlanId::new_v7()).await.unwrap_err().status(),
        Some(404)
    );
    let mut request = harness.request();
    request.parameters.insert("port".into(), json!("high"));
    request.parameters.insert("prt".into(), json!(1));
    let refused = harness.client().preview(&request, None).await.unwrap_err();
    let places: Vec<&str> = refused
        .problem()
        .unwrap()
        .errors
        .iter()
        .map(|e| e.pointer.as_str())
        .collect();
    assert_eq!(places, ["/parameters/prt", "/parameters/port"]);
    let mut request = harness.request();
    request.template = "rol".into();
    let refused = harness.client().preview(&request, None).await.unwrap_err();
    assert_eq!(refused.status(), Some(404));
    assert_eq!(
        refused.problem().unwrap().remedy.as_deref(),
        Some("The pack has: roll.")
    );
}

#[tokio::test]
async fn the_newest_release_is_planned_with_unless_another_is_named() {
    let harness = Harness::ready().await;
    for version in ["1.10.0", "1.9.0", "2.0.0-rc.1"] {
        harness
            .client()
            .push_pack(archive(version, TEMPLATE), version)
            .await
            .unwrap();
    }
    let planned = harness.client().preview(&harness.request(), None).await.unwrap();
    assert_eq!(planned.plan.unwrap().scenario.pack_version, "1.10.0");
    let mut request = harness.request();
    request.pack_version = Some("1.9.0".into());
    let planned = harness.client().preview(&request, None).await.unwrap();
    assert_eq!(planned.plan.unwrap().scenario.pack_version, "1.9.0");
}

#[tokio::test]
async fn another_parameter_makes_the_next_revision_of_the_same_bindings() {
    let harness = Harness::ready().await;
    let planner = &harness.app.planner;
    let base = planner
        .plan(harness.organization, "person:ada", &harness.request())
        .await
        .unwrap();
    // The world moved on: other hosts would be bound now, and one of the bound gained a capability.
    harness.catalog.tell(harness.organization, host("web-0", "z", 1));
    harness.catalog.tell(harness.organization, rack("z"));
    harness.catch_up().await;
    let set = json!({"port": 9090}).as_object().unwrap().clone();
    let next = planner
        .replan(harness.organization, &base.document, &set)
        .await
        .unwrap();
    assert_eq!(next.document.plan().slots, base.document.plan().slots);
    assert_ne!(next.document.digest(), base.document.digest());
    let stored = planner.stored(harness.organization, next.plan_id).await.unwrap();
    assert_eq!(stored.document.bytes(), next.document.bytes());
    let set = json!({"port": "x"}).as_object().unwrap().clone();
    let refused = planner
        .replan(harness.organization, &base.document, &set)
        .await
        .unwrap_err();
    assert_eq!(refused.errors[0].pointer, "/set/port");
}

#[test]
fn a_pin_is_made_as_the_catalog_makes_it() {
    let resource: Resource = serde_json::from_value(host("a", "r", 3)).unwrap();
    let candidate = Candidate {
        resource_id: resource.resource_id.clone(),
        uid: resource.uid,
        resource_type: resource.resource_type.clone(),
        ancestors: resource.resource_type_ancestors.clone(),
        environment: resource.environment.clone(),
        labels: resource.labels.clone(),
        lifecycle: resource.lifecycle_status,
        health: resource.health.status,
        capabilities: resource
            .provided_capabilities
            .iter()
            .map(|held| Capability {
                capability: held.capability.clone(),
                implies: held.implies.clone(),
                attributes: held.attributes.clone(),
            })
            .collect(),
        edges: Vec::new(),
        desired_generation: resource.desired_generation,
        connection: resource.connection.clone(),
    };
    for wanted in [
        Vec::new(),
        vec!["os.linux".parse().unwrap()],
        vec!["web.http".parse().unwrap()],
    ] {
        let catalogs = PinInputs::of(&resource).restricted_to(&wanted).digest();
        assert_eq!(pin_of(&candidate, &wanted).unwrap(), catalogs);
    }
}

/// An ended operation of the harness's template, each of whose hosts took `seconds`.
async fn took(harness: &Harness, organization: OrganizationId, seconds: f64) {
    let superuser = harness.database.open_superuser();
    let (client, id) = (superuser.hot().get().await.unwrap(), uuid::Uuid::now_v7());
    client
        .execute(
            "INSERT INTO operations (id, organization_id, plan_id, pack, pack_version, template, environment, requester, reason, \
             labels, status, run, plan_revision, revision, last_event, last_event_at, progress, created_at, ended_at) \
             VALUES ($1, $2, $1, 'p', '1.0.0', 'roll', 'elsewhere', 'person:ada', '', '{}', 'succeeded', 1, 1, 1, 1, now(), '{}', \
             now(), now())",
            &[&id, &organization.0],
        )
        .await
        .unwrap();
    for node in ["roll[node/x]", "roll[node/y]", "gate"] {
        client
            .execute(
                "INSERT INTO node_runs (operation_id, run, node, organization_id, state, body) VALUES ($1, 1, $2, $3, 'succeeded', \
                 json_build_object('started_at', '2026-01-01T00:00:00Z'::timestamptz, \
                 'ended_at', '2026-01-01T00:00:00Z'::timestamptz + make_interval(secs => $4)))",
                &[&id, &node, &organization.0, &seconds],
            )
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn the_estimate_beside_a_plan_is_the_median_of_what_the_organization_saw_and_not_in_its_digest() {
    let harness = Harness::ready().await;
    let before = harness.client().preview(&harness.request(), None).await.unwrap();
    assert_eq!(before.advice.estimate, None);
    took(&harness, OrganizationId::new_v7(), 1_000.0).await;
    for seconds in [4.0, 5.0, 300.0] {
        took(&harness, harness.organization, seconds).await;
    }
    let after = harness.client().preview(&harness.request(), None).await.unwrap();
    let estimate = after.advice.estimate.unwrap();
    assert_eq!(
        (estimate.seconds, estimate.samples),
        (15, 3),
        "three hosts, one after the other; the gate takes no time"
    );
    assert_eq!(after.digest, before.digest);
}

#[tokio::test]
async fn what_a_template_says_of_its_risk_is_told_beside_the_plan() {
    let harness = Harness::ready().await;
    let risky = format!("{TEMPLATE}risk:\n  - The page is gone for a moment.\n");
    harness
        .client()
        .push_pack(archive("1.0.1", &risky), "second")
        .await
        .unwrap();
    let preview = harness.client().preview(&harness.request(), None).await.unwrap();
    assert_eq!(preview.advice.risk, ["The page is gone for a moment."]);
}
