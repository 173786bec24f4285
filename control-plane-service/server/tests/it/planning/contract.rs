use api_kit::testing::Walk;
use control_plane_api::PageQuery;

use super::harness::{Harness, TEMPLATE, archive};

/// What there is to walk on.
async fn walk(harness: &Harness) -> Walk {
    for version in ["1.0.1", "1.0.2"] {
        let pack = archive(version, TEMPLATE);
        harness.client().push_pack(pack, version).await.unwrap();
    }
    let request = harness.request();
    let preview = harness.client().preview(&request, None).await.unwrap();
    let projection = harness
        .client()
        .projections(&PageQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    Walk::new(harness.base.clone(), harness.minter.clone(), harness.organization)
        .object("/v1/packs/{name}/{version}", "/v1/packs/p/1.0.1")
        .object(
            "/v1/projections/{name}/rebuild",
            format!("/v1/projections/{}/rebuild", projection.name),
        )
        .object("/v1/plans/{id}", format!("/v1/plans/{}", preview.id))
        .body(
            "POST /v1/projections/{name}/rebuild",
            serde_json::json!({"reason": "it looks odd"}),
        )
        .body("POST /v1/plans", serde_json::to_value(&request).unwrap())
        .archive("POST /v1/packs", archive("1.0.3", TEMPLATE))
        .archive("POST /v1/packs/validate", archive("1.0.4", TEMPLATE))
}

#[tokio::test]
async fn every_operation_of_the_planning_side_keeps_the_rules_of_every_api() {
    let harness = Harness::ready().await;
    let walked = walk(&harness).await.run(&harness.document).await;
    assert!(
        walked.faults.is_empty(),
        "{} of {} checks failed:\n{}",
        walked.faults.len(),
        walked.checks,
        walked.faults.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_of_the_planning_side_to_generated_requests_is_as_its_document_says() {
    let harness = Harness::ready().await;
    let generated = walk(&harness).await.generate(&harness.document).await;
    assert!(generated.holds, "{}", generated.report);
    println!("{}", generated.report);
}
