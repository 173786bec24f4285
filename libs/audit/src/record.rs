//! Writing facts, inside the owner's transaction.

use database::{DatabaseError, OrgTransaction};
use kernel::id::OrganizationId;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// A fact as it is written; the database gives it its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFact {
    /// Names the command: written twice, the second changes nothing.
    pub id: Uuid,
    pub organization: OrganizationId,
    pub actor: String,
    pub action: String,
    pub subject: String,
    pub allowed: bool,
    pub result: String,
    pub reason: String,
    pub remote_address: String,
    pub detail: Value,
}

const APPEND: &str = "INSERT INTO audit
    (id, organization_id, actor, action, subject, allowed, result, reason, remote_address, detail)
SELECT id, organization_id, actor, action, subject, allowed, result, reason, remote_address, detail::json
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::text[],
    $9::text[], $10::text[]) WITH ORDINALITY
    AS f (id, organization_id, actor, action, subject, allowed, result, reason, remote_address, detail, position)
ORDER BY position
ON CONFLICT DO NOTHING";

/// The facts column by column.
struct Columns<'a> {
    ids: Vec<Uuid>,
    organizations: Vec<Uuid>,
    texts: [Vec<&'a str>; 6],
    allowed: Vec<bool>,
    details: Vec<String>,
}

impl<'a> Columns<'a> {
    fn of(facts: &'a [NewFact]) -> Self {
        let column = |text: fn(&NewFact) -> &str| facts.iter().map(text).collect::<Vec<_>>();
        let texts = [
            column(|fact| &fact.actor),
            column(|fact| &fact.action),
            column(|fact| &fact.subject),
            column(|fact| &fact.result),
            column(|fact| &fact.reason),
            column(|fact| &fact.remote_address),
        ];
        Self {
            ids: facts.iter().map(|fact| fact.id).collect(),
            organizations: facts.iter().map(|fact| fact.organization.as_uuid()).collect(),
            texts,
            allowed: facts.iter().map(|fact| fact.allowed).collect(),
            details: facts.iter().map(|fact| fact.detail.to_string()).collect(),
        }
    }
}

/// Writes `facts`, all of the organization that the transaction acts for, in one statement.
///
/// # Errors
/// The database refused; the transaction is then broken.
pub async fn append(transaction: &OrgTransaction, facts: &[NewFact]) -> Result<(), DatabaseError> {
    if facts.is_empty() {
        return Ok(());
    }
    let Columns {
        ids,
        organizations,
        texts: [actors, actions, subjects, results, reasons, addresses],
        allowed,
        details,
    } = Columns::of(facts);
    let statement = transaction.prepare_cached(APPEND).await?;
    transaction
        .execute(
            &statement,
            &[
                &ids,
                &organizations,
                &actors,
                &actions,
                &subjects,
                &allowed,
                &results,
                &reasons,
                &addresses,
                &details,
            ],
        )
        .await?;
    Ok(())
}

/// [`append`] through sqlx.
///
/// # Errors
/// As [`append`].
pub async fn append_sqlx(connection: &mut PgConnection, facts: &[NewFact]) -> Result<(), DatabaseError> {
    if facts.is_empty() {
        return Ok(());
    }
    let Columns {
        ids,
        organizations,
        texts: [actors, actions, subjects, results, reasons, addresses],
        allowed,
        details,
    } = Columns::of(facts);
    sqlx::query(APPEND)
        .bind(ids)
        .bind(organizations)
        .bind(actors)
        .bind(actions)
        .bind(subjects)
        .bind(allowed)
        .bind(results)
        .bind(reasons)
        .bind(addresses)
        .bind(details)
        .execute(connection)
        .await?;
    Ok(())
}
