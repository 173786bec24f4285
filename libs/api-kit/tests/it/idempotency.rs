use api_kit::{Claim, IdempotencyKey, IdempotentRequest, Problem, StoredResponse, idempotency_hot, idempotency_sqlx};
use futures::future::join_all;
use http::{HeaderMap, Method};
use kernel::id::OrganizationId;
use serde_json::json;

use crate::live::Live;

fn key(text: &str) -> IdempotencyKey {
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", text.parse().unwrap());
    IdempotencyKey::from_headers(&headers).unwrap()
}

fn request(name: &str, body: &str) -> IdempotentRequest {
    IdempotentRequest::new(key(name), &Method::POST, &"/v1/notes".parse().unwrap(), body.as_bytes())
}

#[tokio::test]
async fn a_repeat_has_the_first_answer_to_the_letter_and_does_nothing_again() {
    let live = Live::start().await;
    let send = || {
        live.request("POST", "/v1/notes")
            .header("idempotency-key", "one")
            .json(&json!({"body": "x"}))
            .send()
    };
    let first = send().await.unwrap();
    assert!(!first.headers().contains_key("idempotency-replayed"));
    let second = send().await.unwrap();
    assert_eq!(second.headers()["idempotency-replayed"], "true");
    for header in ["location", "etag", "content-type"] {
        assert_eq!(first.headers()[header], second.headers()[header], "{header}");
    }
    assert_eq!(first.status(), second.status());
    assert_eq!(first.text().await.unwrap(), second.text().await.unwrap());
    assert_eq!(live.count().await, 1);
}

#[tokio::test]
async fn repeats_at_the_same_moment_do_it_once_and_all_hear_the_same() {
    let live = Live::start().await;
    let sent = (0..8).map(|_| {
        live.request("POST", "/v1/notes")
            .header("idempotency-key", "same")
            .json(&json!({"body": "x"}))
            .send()
    });
    let mut bodies = Vec::new();
    for response in join_all(sent).await {
        let response = response.unwrap();
        assert_eq!(response.status(), 201);
        bodies.push(response.text().await.unwrap());
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(live.count().await, 1);
}

#[tokio::test]
async fn the_same_key_with_another_body_is_refused_and_says_so() {
    let live = Live::start().await;
    let send = |body: &'static str| {
        live.request("POST", "/v1/notes")
            .header("idempotency-key", "one")
            .json(&json!({ "body": body }))
            .send()
    };
    assert_eq!(send("x").await.unwrap().status(), 201);
    let refused = send("y").await.unwrap();
    assert_eq!(refused.status(), 422);
    assert_eq!(refused.json::<Problem>().await.unwrap().code, "idempotency_key_reused");
    assert_eq!(live.count().await, 1);
}

#[tokio::test]
async fn a_key_whose_request_failed_is_free_again() {
    let live = Live::start().await;
    let first = live.database.begin_hot(live.organization).await.unwrap();
    let claim = idempotency_hot::claim(&first, live.organization, &request("k", "a"))
        .await
        .unwrap();
    assert_eq!(claim, Claim::Fresh);
    first.rollback().await.unwrap();
    let second = live.database.begin_hot(live.organization).await.unwrap();
    let claim = idempotency_hot::claim(&second, live.organization, &request("k", "b"))
        .await
        .unwrap();
    assert_eq!(claim, Claim::Fresh);
}

#[tokio::test]
async fn keys_of_different_organizations_do_not_meet() {
    let live = Live::start().await;
    for organization in [live.organization, OrganizationId::new_v7()] {
        let transaction = live.database.begin_hot(organization).await.unwrap();
        let claim = idempotency_hot::claim(&transaction, organization, &request("k", "a"))
            .await
            .unwrap();
        assert_eq!(claim, Claim::Fresh);
        transaction.commit().await.unwrap();
    }
}

#[tokio::test]
async fn both_libraries_keep_and_find_the_same_answer() {
    let live = Live::start().await;
    let answer = StoredResponse::json(202, &json!({"a": 1}))
        .unwrap()
        .version(4)
        .location("/x");
    let mut transaction = live.database.begin(live.organization).await.unwrap();
    let fresh = idempotency_sqlx::claim(&mut transaction, live.organization, &request("k", "a"))
        .await
        .unwrap();
    assert_eq!(fresh, Claim::Fresh);
    idempotency_sqlx::store(&mut transaction, live.organization, &request("k", "a"), &answer)
        .await
        .unwrap();
    transaction.commit().await.unwrap();

    let hot = live.database.begin_hot(live.organization).await.unwrap();
    let found = idempotency_hot::claim(&hot, live.organization, &request("k", "a"))
        .await
        .unwrap();
    drop(hot);
    let mut transaction = live.database.begin(live.organization).await.unwrap();
    let again = idempotency_sqlx::claim(&mut transaction, live.organization, &request("k", "a"))
        .await
        .unwrap();
    assert_eq!(found, again);
    let Claim::Replay(found) = found else {
        panic!("it is a repeat")
    };
    assert_eq!(
        (found.status, found.body, found.version, found.location),
        (202, answer.body, Some(4), Some("/x".into()))
    );
    let refused = idempotency_sqlx::claim(&mut transaction, live.organization, &request("k", "b"))
        .await
        .unwrap_err();
    assert_eq!(refused.code, "idempotency_key_reused");
}

#[tokio::test]
async fn after_seven_days_a_key_is_forgotten() {
    let live = Live::start().await;
    let superuser = live.test.open_superuser();
    let worker = live.test.open(database::ServiceRole::Worker);
    for name in ["old", "young"] {
        let transaction = live.database.begin_hot(live.organization).await.unwrap();
        idempotency_hot::claim(&transaction, live.organization, &request(name, "a"))
            .await
            .unwrap();
        idempotency_hot::store(
            &transaction,
            live.organization,
            &request(name, "a"),
            &StoredResponse::empty(204),
        )
        .await
        .unwrap();
        transaction.commit().await.unwrap();
    }
    let age = "UPDATE idempotency_keys SET created_at = now() - interval '8 days' WHERE key = 'old'";
    superuser.hot().get().await.unwrap().batch_execute(age).await.unwrap();

    let transaction = live.database.begin_hot(live.organization).await.unwrap();
    let claim = idempotency_hot::claim(&transaction, live.organization, &request("old", "b"))
        .await
        .unwrap();
    assert_eq!(claim, Claim::Fresh, "free before the sweep");
    transaction.rollback().await.unwrap();

    assert_eq!(idempotency_hot::reap(&worker).await.unwrap(), 1);
    let transaction = live.database.begin_hot(live.organization).await.unwrap();
    let claim = idempotency_hot::claim(&transaction, live.organization, &request("young", "a"))
        .await
        .unwrap();
    assert!(matches!(claim, Claim::Replay(_)));
}

#[test]
fn a_key_is_one_header_of_visible_ascii() {
    let mut twice = HeaderMap::new();
    twice.append("idempotency-key", "a".parse().unwrap());
    twice.append("idempotency-key", "b".parse().unwrap());
    assert_eq!(
        IdempotencyKey::from_headers(&twice).unwrap_err().code,
        "invalid_idempotency_key"
    );
    for bad in ["", "with space", &"x".repeat(256)] {
        let mut headers = HeaderMap::new();
        headers.insert("idempotency-key", bad.parse().unwrap());
        assert_eq!(
            IdempotencyKey::from_headers(&headers).unwrap_err().code,
            "invalid_idempotency_key",
            "{bad}"
        );
    }
}
