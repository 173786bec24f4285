use control_plane_api::PageQuery;
use identity::Role;
use kernel::id::OrganizationId;

use super::harness::{Harness, TEMPLATE, archive};

#[tokio::test]
async fn a_version_is_published_once_and_never_changes() {
    let harness = Harness::new().await;
    let client = harness.client();
    let first = client.push_pack(archive("1.0.0", TEMPLATE), "a").await.unwrap();
    assert_eq!(
        (first.status, first.body.templates.as_slice()),
        (201, ["roll".to_owned()].as_slice())
    );
    let again = client.push_pack(archive("1.0.0", TEMPLATE), "b").await.unwrap();
    assert_eq!((again.status, again.body), (200, first.body.clone()));
    let other = TEMPLATE.replace("8080", "9090");
    let refused = client.push_pack(archive("1.0.0", &other), "c").await.unwrap_err();
    assert_eq!(refused.code(), Some("pack_version_exists"));
    let next = client.push_pack(archive("1.1.0", &other), "d").await.unwrap().body;
    assert_ne!(next.digest, first.body.digest);
    assert_eq!(next.content_digest, first.body.content_digest);
}

#[tokio::test]
async fn field_note_32_a_malformed_pack_is_refused_with_every_line() {
    let harness = Harness::new().await;
    let bad = TEMPLATE
        .replace("requirements:", "requirement:")
        .replace("needs: [roll]", "needs: [rol]");
    let found = harness.client().validate_pack(archive("1.0.0", &bad)).await.unwrap();
    let places: Vec<(u32, &str)> = found.faults.iter().map(|f| (f.line, f.code.as_str())).collect();
    assert_eq!(
        places,
        [(4, "unknown_field"), (13, "unknown_slot"), (15, "unknown_node")]
    );
    assert!(
        !found.valid
            && found
                .faults
                .iter()
                .all(|f| f.file == "templates/t.yaml" && !f.remedy.is_empty())
    );
    let refused = harness
        .client()
        .push_pack(archive("1.0.0", &bad), "a")
        .await
        .unwrap_err();
    let problem = refused.problem().unwrap();
    assert_eq!(
        (problem.status, problem.code.as_str(), problem.errors.len()),
        (422, "invalid_pack", 3)
    );
    assert!(problem.errors[0].pointer.starts_with("/templates/t.yaml:4:"));
    let none = harness.client().packs(&PageQuery::default()).await.unwrap();
    assert!(none.items.is_empty(), "nothing half-written");
}

#[tokio::test]
async fn packs_are_listed_in_pages_and_only_to_their_organization() {
    let harness = Harness::new().await;
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        harness
            .client()
            .push_pack(archive(version, TEMPLATE), version)
            .await
            .unwrap();
    }
    let mut query = PageQuery {
        limit: Some(2),
        ..PageQuery::default()
    };
    let first = harness.client().packs(&query).await.unwrap();
    query.cursor = first.next_cursor;
    let second = harness.client().packs(&query).await.unwrap();
    let versions: Vec<String> = first
        .items
        .into_iter()
        .chain(second.items)
        .map(|pack| pack.version)
        .collect();
    assert_eq!(versions, ["1.0.0", "1.1.0", "2.0.0"]);
    assert_eq!(second.next_cursor, None);
    let stranger = harness.client_of(OrganizationId::new_v7(), Role::Admin);
    assert!(stranger.packs(&PageQuery::default()).await.unwrap().items.is_empty());
    let planned = stranger.preview(&harness.request(), None).await.unwrap_err();
    assert_eq!(planned.status(), Some(404));
    let viewer = harness.client_of(harness.organization, Role::Viewer);
    let refused = viewer.push_pack(archive("3.0.0", TEMPLATE), "x").await.unwrap_err();
    assert_eq!(refused.status(), Some(403));
}

#[tokio::test]
async fn what_is_no_archive_is_refused() {
    let harness = Harness::new().await;
    let refused = harness.client().push_pack("not a tar".into(), "a").await.unwrap_err();
    assert_eq!(refused.code(), Some("invalid_archive"));
}
