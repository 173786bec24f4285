//! Writing events, inside the owner's transaction.

use database::OrgTransaction;
use sqlx::PgConnection;

use crate::event::NewEvent;

/// The statement behind [`append`], for owners who fold it into a larger one. Parameters, each an
/// array with one item an event: organizations `uuid[]`, keys `text[]`, versions `bigint[]`, kinds
/// `text[]`, event ids `uuid[]`, payloads `text[]`, times `timestamptz[]`, traceparents `text[]`.
pub const APPEND: &str =
    "INSERT INTO outbox (organization_id, key, version, kind, event_id, payload, occurred_at, traceparent)
SELECT organization_id, key, version, kind, event_id, payload, occurred_at, traceparent
FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::uuid[], $6::text[], $7::timestamptz[], $8::text[])
WITH ORDINALITY AS e (organization_id, key, version, kind, event_id, payload, occurred_at, traceparent, position)
ORDER BY position";

/// The events column by column.
macro_rules! columns {
    ($events:expr) => {{
        let events: &[NewEvent] = $events;
        (
            events
                .iter()
                .map(|event| event.organization.as_uuid())
                .collect::<Vec<_>>(),
            events.iter().map(|event| event.key.as_str()).collect::<Vec<_>>(),
            events.iter().map(|event| event.version).collect::<Vec<_>>(),
            events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(),
            events.iter().map(|event| event.event_id).collect::<Vec<_>>(),
            events.iter().map(|event| event.payload.as_str()).collect::<Vec<_>>(),
            events.iter().map(|event| event.occurred_at).collect::<Vec<_>>(),
            events
                .iter()
                .map(|event| event.traceparent.as_deref())
                .collect::<Vec<_>>(),
        )
    }};
}

/// Writes `events` in their order, all in one statement. After the commit, call
/// [`crate::Signal::wake`].
///
/// # Errors
/// The database refused; the transaction is then broken.
pub async fn append(transaction: &OrgTransaction, events: &[NewEvent]) -> Result<(), database::DatabaseError> {
    if events.is_empty() {
        return Ok(());
    }
    let (organizations, keys, versions, kinds, ids, payloads, times, traces) = columns!(events);
    let statement = transaction.prepare_cached(APPEND).await?;
    transaction
        .execute(
            &statement,
            &[
                &organizations,
                &keys,
                &versions,
                &kinds,
                &ids,
                &payloads,
                &times,
                &traces,
            ],
        )
        .await?;
    Ok(())
}

/// [`append`] through sqlx.
///
/// # Errors
/// As [`append`].
pub async fn append_sqlx(connection: &mut PgConnection, events: &[NewEvent]) -> Result<(), database::DatabaseError> {
    if events.is_empty() {
        return Ok(());
    }
    let (organizations, keys, versions, kinds, ids, payloads, times, traces) = columns!(events);
    sqlx::query(APPEND)
        .bind(organizations)
        .bind(keys)
        .bind(versions)
        .bind(kinds)
        .bind(ids)
        .bind(payloads)
        .bind(times)
        .bind(traces)
        .execute(connection)
        .await?;
    Ok(())
}
