//! The HTTP edge: one verb a file. Handlers turn wire types into domain types and back, and decide
//! nothing.

mod access;
mod artifact_get;
mod artifact_list;
mod attempt_cancel;
mod attempt_get;
mod attempt_list;
mod attempt_submit;
mod content_get;
mod content_put;
mod feed_read;
mod output_get;
mod policy_get;
mod policy_put;
mod problems;
mod queries;
mod results_pull;
mod runner_artifact_put;
mod runner_content;
mod runner_drain;
mod runner_finish;
mod runner_identity;
mod runner_input;
mod runner_list;
mod runner_output;
mod runner_pull;
mod runner_renew;
mod runner_session;
mod runner_started;
mod waiting;
mod wire;

use std::sync::Arc;

use api_kit::{ApiBuilder, OpenApiRouter, Problem, database_problem, internal_problem, routes};
use outbox::FeedError;

use crate::config::Config;
use crate::core::Core;

pub use access::table;

/// The API around `core`, not yet built.
pub fn api(core: Arc<Core>) -> ApiBuilder {
    let table = table(&core.hot.config);
    ApiBuilder::new(TITLE, env!("CARGO_PKG_VERSION"), routes().with_state(core), table)
}

/// The API's document alone, which needs no database.
pub fn document() -> ApiBuilder {
    let described = OpenApiRouter::with_openapi(routes().to_openapi());
    ApiBuilder::new(TITLE, env!("CARGO_PKG_VERSION"), described, table(&Config::default()))
}

/// The head of the feed: what changes after it is in the feed beyond this revision.
async fn head(core: &Core) -> Result<i64, Problem> {
    core.feed.head().await.map_err(|error| match error {
        FeedError::Database(error) => database_problem(&error),
        error => internal_problem(&error),
    })
}

const TITLE: &str = "execution-plane-service";

fn routes() -> OpenApiRouter<Arc<Core>> {
    OpenApiRouter::new()
        .routes(routes!(attempt_submit::submit_attempts))
        .routes(routes!(attempt_list::list_attempts))
        .routes(routes!(attempt_get::get_attempt))
        .routes(routes!(attempt_cancel::cancel_attempt))
        .routes(routes!(output_get::get_output))
        .routes(routes!(artifact_list::list_artifacts))
        .routes(routes!(artifact_get::get_artifact))
        .routes(routes!(results_pull::pull_results))
        .routes(routes!(content_put::put_content, content_get::get_content))
        .routes(routes!(policy_put::put_command_policy, policy_get::get_command_policy))
        .routes(routes!(runner_list::list_runners))
        .routes(routes!(runner_drain::drain_runner))
        .routes(routes!(feed_read::read_feed))
        .routes(routes!(runner_session::open_session))
        .routes(routes!(runner_pull::pull_leases))
        .routes(routes!(runner_renew::renew_leases))
        .routes(routes!(runner_started::report_started))
        .routes(routes!(runner_output::append_output))
        .routes(routes!(runner_artifact_put::upload_artifact))
        .routes(routes!(runner_finish::finish_attempt))
        .routes(routes!(runner_content::fetch_content))
        .routes(routes!(runner_input::fetch_input_artifact))
}
