use contracts::EvidenceResult;
use resource_catalog_api::{ObserveCapability, Provenance};
use serde_json::{Map, json};

use crate::harness::{Catalog, dotted, evidence, id, map, node, put};

#[tokio::test]
async fn an_observer_adds_and_withdraws_a_capability_with_proof() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    let operator = catalog.operator();
    put(&operator, "node/web-1", &node()).await;
    let capability = dotted("os.linux.debian");
    let seen = ObserveCapability {
        attributes: map(json!({"version": "12"})),
        evidence: vec![evidence("os.linux.debian", EvidenceResult::Passed)],
    };
    let now = operator
        .observe_capability(&id("node/web-1"), &capability, &seen)
        .await
        .unwrap();
    let provided = &now.provided_capabilities[0];
    assert_eq!(now.version, 2);
    assert!(provided.provides(&dotted("os.linux")));
    assert_eq!(
        provided.provenance,
        Provenance::Observer {
            subject: "person:op".into()
        }
    );
    let again = operator
        .observe_capability(&id("node/web-1"), &capability, &seen)
        .await
        .unwrap();
    assert_eq!(again.version, 2, "what is known makes no version");
    let gone = operator
        .withdraw_capability(&id("node/web-1"), &capability)
        .await
        .unwrap();
    assert_eq!((gone.version, gone.provided_capabilities.len()), (3, 0));
    assert_eq!(
        operator
            .withdraw_capability(&id("node/web-1"), &capability)
            .await
            .unwrap()
            .version,
        3
    );
}

#[tokio::test]
async fn without_proof_or_definition_nothing_is_provided() {
    let catalog = Catalog::start().await;
    catalog.define().await;
    let operator = catalog.operator();
    put(&operator, "node/web-1", &node()).await;
    let codes = async |capability: &str, evidence| {
        let seen = ObserveCapability {
            attributes: Map::new(),
            evidence,
        };
        let refused = operator
            .observe_capability(&id("node/web-1"), &dotted(capability), &seen)
            .await;
        refused.unwrap_err().problem().unwrap().errors[0].code.clone()
    };
    assert_eq!(codes("web.http", vec![]).await, "evidence_missing");
    assert_eq!(
        codes("web.http", vec![evidence("web.http", EvidenceResult::Inconclusive)]).await,
        "evidence_missing"
    );
    assert_eq!(codes("no.such", vec![]).await, "unknown_capability");
}
