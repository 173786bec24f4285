use std::sync::Arc;

use api_kit::{Caller, Closing, FieldError, Problem, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State as Shared;
use execution_plane_api::FeedPage;
use identity::Role;
use outbox::FeedError;

use super::queries::FeedPosition;
use super::waiting;
use crate::core::Core;

/// Reads facts about attempts, in one gapless order.
///
/// A service that reads on from a revision has what comes before it: that may be reaped.
#[utoipa::path(get, path = "/v1/feed", tag = "feed", params(FeedPosition), responses((status = 200, body = FeedPage)))]
pub async fn read_feed(
    Shared(core): Shared<Arc<Core>>,
    caller: Caller,
    closing: Closing,
    StrictQuery(query): StrictQuery<FeedPosition>,
) -> Result<Json<outbox::FeedPage>, Problem> {
    let after = i64::try_from(query.after.unwrap_or(0)).unwrap_or(i64::MAX);
    let patience = waiting::wait(query.wait_seconds.unwrap_or(0))?;
    let (feed, limit, organization) = (&core.feed, query.limit.get(), caller.organization);
    let page = tokio::select! {
        page = feed.read_or_wait(after, limit, organization, patience) => page,
        () = closing.closed() => feed.read(after, limit, organization).await,
    };
    let page = page.map_err(|error| refuse(&error))?;
    if caller.has_role(Role::Service) {
        let noted = feed.reads_on(&caller.subject, organization, after).await;
        noted.map_err(|error| database_problem(&error))?;
    }
    Ok(Json(page))
}

fn refuse(error: &FeedError) -> Problem {
    match error {
        FeedError::Database(error) => database_problem(error),
        FeedError::TooFarBehind { floor } => Problem::new(410, "feed_too_far_behind", "The events are gone")
            .detail(format!("{error}."))
            .remedy("Begin anew from the list of attempts.")
            .with("floor", *floor),
        FeedError::Ahead { head } => Problem::invalid([FieldError::new("/after", "ahead", error.to_string())])
            .remedy("The reader's position is of another database: begin anew.")
            .with("head", *head),
    }
}
