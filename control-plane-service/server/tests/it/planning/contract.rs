use api_kit::testing::Walk;
use control_plane_api::PageQuery;

use super::harness::{Harness, TEMPLATE, archive};

#[tokio::test]
async fn every_operation_of_the_planning_side_keeps_the_rules_of_every_api() {
    let harness = Harness::ready().await;
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
    let walked = Walk::new(harness.base.clone(), harness.minter.clone(), harness.organization)
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
        .run(&harness.document)
        .await;
    assert!(
        walked.faults.is_empty(),
        "{} of {} checks failed:\n{}",
        walked.faults.len(),
        walked.checks,
        walked.faults.join("\n")
    );
}
