//! `/v1/feed`

use std::time::Duration;

use api_kit::{Caller, Closing, Problem, StrictQuery};
use axum::Json;
use axum::extract::State;
use identity::Role;
use resource_catalog_api::{FeedPage, FeedQuery};

use crate::catalog::Catalog;
use crate::feed::Changes;
use crate::http::query;

/// Longest wait for something new.
const MAX_WAIT: u32 = 30;

/// Gives the changes after a revision, in the order of the whole catalog, waiting for some where asked.
///
/// 410 `revision_gone` when the feed does not reach back so far. A service that reads on from a revision has
/// what comes before it: that may be reaped.
#[utoipa::path(
    get,
    path = "/v1/feed",
    tag = "events",
    params(FeedQuery),
    responses((status = 200, description = "Some changes, or none in the time", body = FeedPage))
)]
pub async fn get_feed(
    State(catalog): State<Catalog>,
    caller: Caller,
    closing: Closing,
    StrictQuery(asked): StrictQuery<FeedQuery>,
) -> Result<Json<FeedPage>, Problem> {
    let limit = query::limit(asked.limit)?;
    let wait = asked.wait_seconds.unwrap_or(0);
    if wait > MAX_WAIT {
        let detail = format!("{wait} is not a number from 0 to {MAX_WAIT}");
        return Err(query::fault("/wait_seconds", "invalid", detail));
    }
    if asked.after < 0 {
        return Err(query::fault("/after", "invalid", "a revision is not negative"));
    }
    let patience = Duration::from_secs(u64::from(wait));
    let feed = catalog.feed();
    let read = feed.read(caller.organization, asked.after, limit, patience);
    let Changes {
        changes,
        next_after,
        head,
    } = tokio::select! {
        changes = read => changes?,
        // The service ends: an empty answer now, instead of a cut connection later.
        () = closing.closed() => feed.read(caller.organization, asked.after, limit, Duration::ZERO).await?,
    };
    if caller.has_role(Role::Service) {
        feed.reads_on(&caller, asked.after).await?;
    }
    Ok(Json(FeedPage {
        events: changes.into_iter().flat_map(|change| change.events).collect(),
        next_after,
        head,
    }))
}
