use api_kit::Cursor;
use proptest::prelude::*;

use crate::live::Live;
use crate::notebook::Notes;

async fn page(live: &Live, query: &str) -> Notes {
    let response = live.request("GET", &format!("/v1/notes?{query}")).send().await.unwrap();
    assert_eq!(response.status(), 200, "{query}");
    response.json().await.unwrap()
}

#[tokio::test]
async fn pages_are_complete_and_each_thing_comes_once_also_when_things_come_meanwhile() {
    let live = Live::start().await;
    for number in 0..7 {
        live.note(&format!("note {number}")).await;
    }
    let mut seen = Vec::new();
    let mut query = "limit=3".to_owned();
    loop {
        let page = page(&live, &query).await;
        seen.extend(page.items.into_iter().map(|note| note.body));
        // Written while the reader is between pages.
        if seen.len() == 3 {
            live.note("late").await;
        }
        match page.next_cursor {
            Some(cursor) => query = format!("limit=3&cursor={cursor}"),
            None => break,
        }
    }
    let mut expected: Vec<String> = (0..7).map(|number| format!("note {number}")).collect();
    expected.push("late".to_owned());
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_cursor_of_another_query_or_organization_is_refused() {
    let live = Live::start().await;
    for _ in 0..2 {
        live.note("note").await;
    }
    let cursor = page(&live, "limit=1").await.next_cursor.unwrap();
    let other = live.request("GET", &format!("/v1/notes?limit=1&contains=n&cursor={cursor}"));
    assert_eq!(other.send().await.unwrap().status(), 422);
    let stranger = Live {
        organization: kernel::id::OrganizationId::new_v7(),
        ..live
    };
    let refused = stranger.request("GET", &format!("/v1/notes?limit=1&cursor={cursor}"));
    assert_eq!(refused.send().await.unwrap().status(), 422);
}

proptest! {
    #[test]
    fn a_cursor_reads_back_for_its_own_query_and_for_no_other(filter in "[a-z]{0,8}", other in "[a-z]{0,8}", key in any::<(i64, u32)>()) {
        let text = Cursor::encode(&filter, key);
        prop_assert_eq!(Cursor::<(i64, u32)>::decode(&filter, &text).unwrap(), key);
        prop_assert_eq!(Cursor::<(i64, u32)>::decode(&other, &text).is_ok(), filter == other);
        prop_assert!(Cursor::<String>::decode(&filter, &text).is_err());
    }

    #[test]
    fn no_text_makes_the_decoder_fall_over(text in "\\PC{0,80}") {
        prop_assert!(Cursor::<i64>::decode(&"q", &text).is_err());
    }
}
