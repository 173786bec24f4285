//! What a forger with the rights of a superuser does to the tables, and how it shows.

use audit::{Broken, HeadHash, chain_batch};

use crate::world::World;

#[tokio::test]
async fn a_changed_fact_is_detected_whichever_column_it_is() {
    for change in [
        "actor = 'person:eve'",
        "action = 'note.read'",
        "subject = 'note/9'",
        "allowed = false",
        "result = 'forbidden'",
        "reason = 'because'",
        "remote_address = '10.0.0.1'",
        "detail = '{\"a\": {\"text\": \"u\"}, \"b\": 1}'",
        "at = at + interval '1 microsecond'",
    ] {
        let world = World::chained(5).await;
        world.verify().await.unwrap();
        world
            .forge(&format!("UPDATE audit SET {change} WHERE subject = 'note/3'"))
            .await;
        assert_eq!(world.verify().await, Err(Broken::Changed { sequence: 3 }), "{change}");
    }
}

#[tokio::test]
async fn a_removed_fact_is_detected() {
    let world = World::chained(5).await;
    world.forge("DELETE FROM audit WHERE subject = 'note/2'").await;
    assert_eq!(world.verify().await, Err(Broken::FactGone { sequence: 2 }));
}

#[tokio::test]
async fn a_fact_removed_with_its_link_is_detected() {
    let world = World::chained(5).await;
    world
        .forge("DELETE FROM audit WHERE subject = 'note/2'; DELETE FROM audit_chain WHERE sequence = 2")
        .await;
    let expected = Broken::Sequence { expected: 2, found: 3 };
    assert_eq!(world.verify().await, Err(expected));
}

#[tokio::test]
async fn a_fact_removed_with_its_link_is_detected_when_the_others_close_up() {
    let world = World::chained(5).await;
    let close_up = "DELETE FROM audit WHERE subject = 'note/2'; DELETE FROM audit_chain WHERE sequence = 2; \
        UPDATE audit_chain SET sequence = sequence - 1 + 100 WHERE sequence > 2; \
        UPDATE audit_chain SET sequence = sequence - 100 WHERE sequence > 100; \
        UPDATE audit_heads SET sequence = 4";
    world.forge(close_up).await;
    assert_eq!(world.verify().await, Err(Broken::NotLinked { sequence: 2 }));
}

#[tokio::test]
async fn facts_that_changed_places_are_detected() {
    let world = World::chained(5).await;
    let exchange = "UPDATE audit_chain SET sequence = 102 WHERE sequence = 2; \
        UPDATE audit_chain SET sequence = 2 WHERE sequence = 3; \
        UPDATE audit_chain SET sequence = 3 WHERE sequence = 102";
    world.forge(exchange).await;
    assert_eq!(world.verify().await, Err(Broken::NotLinked { sequence: 2 }));
}

#[tokio::test]
async fn facts_exchanged_under_their_links_are_detected() {
    let world = World::chained(5).await;
    let exchange = "ALTER TABLE audit_chain DROP CONSTRAINT audit_chain_once; \
        UPDATE audit_chain c SET fact_id = o.fact_id FROM audit_chain o \
        WHERE (c.sequence, o.sequence) IN ((2, 3), (3, 2))";
    world.forge(exchange).await;
    assert_eq!(world.verify().await, Err(Broken::Changed { sequence: 2 }));
}

const INVENTED: &str = "INSERT INTO audit (id, organization_id, at, actor, action, subject, allowed, result, reason, \
        remote_address, detail) \
    SELECT gen_random_uuid(), organization_id, at, actor, action, 'invented', allowed, result, reason, remote_address, \
        detail FROM audit WHERE subject = 'note/2'";

#[tokio::test]
async fn a_fact_that_was_slipped_in_is_detected() {
    let world = World::chained(5).await;
    world.forge(INVENTED).await;
    let expected = Broken::Unaccounted {
        facts: 6,
        chained: 5,
        waiting: 0,
    };
    assert_eq!(world.verify().await, Err(expected));
}

#[tokio::test]
async fn a_fact_that_was_slipped_in_with_a_link_is_detected() {
    let world = World::chained(5).await;
    let shift = "UPDATE audit_chain SET sequence = sequence + 101 WHERE sequence > 2; \
        UPDATE audit_chain SET sequence = sequence - 100 WHERE sequence > 100; \
        INSERT INTO audit_chain (organization_id, sequence, fact_id, chained_at, previous_hash, hash) \
        SELECT c.organization_id, 3, a.id, c.chained_at, c.hash, sha256('invented') \
        FROM audit_chain c, audit a WHERE c.sequence = 2 AND a.subject = 'invented'; \
        UPDATE audit_heads SET sequence = 6";
    world.forge(&format!("{INVENTED}; {shift}")).await;
    assert_eq!(world.verify().await, Err(Broken::Changed { sequence: 3 }));
}

#[tokio::test]
async fn an_end_that_was_cut_off_is_detected() {
    let world = World::chained(5).await;
    let cut = "DELETE FROM audit WHERE subject = 'note/5'; DELETE FROM audit_chain WHERE sequence = 5";
    world.forge(cut).await;
    assert_eq!(world.verify().await, Err(Broken::CutOff { ends: 4, head: 5 }));
}

#[tokio::test]
async fn an_end_cut_off_together_with_its_head_shows_by_a_head_that_was_kept() {
    let world = World::chained(5).await;
    let kept = world.verify().await.unwrap();
    let cut = "DELETE FROM audit WHERE subject = 'note/5'; DELETE FROM audit_chain WHERE sequence = 5; \
        UPDATE audit_heads h SET sequence = 4, hash = c.hash FROM audit_chain c WHERE c.sequence = 4";
    world.forge(cut).await;
    assert_eq!(
        world.verify_with([kept]).await,
        Err(Broken::CutOff { ends: 4, head: 5 })
    );
}

#[tokio::test]
async fn a_chain_made_anew_shows_by_a_head_that_was_kept() {
    let world = World::chained(5).await;
    let kept: HeadHash = world.verify().await.unwrap();
    let anew = "UPDATE audit SET actor = 'person:eve' WHERE subject = 'note/2'; \
        INSERT INTO audit_unchained (organization_id, fact_id) \
        SELECT organization_id, fact_id FROM audit_chain ORDER BY sequence; \
        DELETE FROM audit_chain; DELETE FROM audit_heads";
    world.forge(anew).await;
    chain_batch(&world.worker, 1_000).await.unwrap();
    world.verify().await.unwrap();
    assert_eq!(world.verify_with([kept]).await, Err(Broken::OtherHead { sequence: 5 }));
}

#[tokio::test]
async fn a_fact_removed_before_it_was_chained_is_detected() {
    let world = World::chained(2).await;
    world.write(&["note/3", "note/4"]).await;
    world.forge("DELETE FROM audit WHERE subject = 'note/3'").await;
    chain_batch(&world.worker, 1_000).await.unwrap();
    let expected = Broken::Unaccounted {
        facts: 3,
        chained: 3,
        waiting: 1,
    };
    assert_eq!(world.verify().await, Err(expected));
}
