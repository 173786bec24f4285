//! What a person names on the command line, found: ids read, names looked up, and what to do when there
//! is no such thing.

use contracts::ArtifactRef;
use control_plane_api::{PageQuery, ProjectionView};
use execution_plane_api::{ArtifactListQuery, Runner, RunnerListQuery};
use kernel::id::{AttemptId, OperationId, PlanId};

use crate::error::CliError;
use crate::exit::Exit;
use crate::pages;
use crate::platform::Platform;

fn id<T: std::str::FromStr>(text: &str, what: &str, hint: &str) -> Result<T, CliError> {
    text.parse()
        .map_err(|_| CliError::usage(format!("{text:?} is not the id of {what}")).hint(hint))
}

/// Reads an operation's id.
///
/// # Errors
/// Says where to find one.
pub fn operation_id(text: &str) -> Result<OperationId, CliError> {
    id(text, "an operation", "'platform get operations' lists them")
}

/// Reads an attempt's id.
///
/// # Errors
/// Says where to find one.
pub fn attempt_id(text: &str) -> Result<AttemptId, CliError> {
    id(
        text,
        "an attempt",
        "'platform get attempts --operation OPERATION' lists them",
    )
}

/// Reads a plan's id.
///
/// # Errors
/// Says where to find one.
pub fn plan_id(text: &str) -> Result<PlanId, CliError> {
    id(
        text,
        "a plan",
        "'platform plan' prints it; 'platform describe operation' as well",
    )
}

/// The error of a name that nothing has.
pub fn unknown(what: &str, name: &str, kind: &str) -> CliError {
    CliError::new(Exit::NotFound, format!("there is no {what} {name:?}"))
        .hint(format!("'platform get {kind}' lists them"))
}

/// A runner by its name or its id.
///
/// # Errors
/// When there is none.
pub async fn runner(name: &str, platform: &Platform) -> Result<Runner, CliError> {
    let listed = pages::read(None, |limit, cursor| async move {
        let query = RunnerListQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.execution.runners(&query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    let mut runners = listed.items.into_iter();
    runners
        .find(|runner| runner.name == name || runner.runner_id.to_string() == name)
        .ok_or_else(|| unknown("runner", name, "runners"))
}

/// Every artifact of an attempt, by name.
///
/// # Errors
/// When the service refuses.
pub async fn artifacts(attempt: AttemptId, platform: &Platform) -> Result<Vec<ArtifactRef>, CliError> {
    let listed = pages::read(None, |limit, cursor| async move {
        let query = ArtifactListQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.execution.artifacts(attempt, &query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    Ok(listed.items)
}

/// Every local copy of the catalog.
///
/// # Errors
/// When the service refuses.
pub async fn projections(platform: &Platform) -> Result<Vec<ProjectionView>, CliError> {
    let listed = pages::read(None, |limit, cursor| async move {
        let query = PageQuery {
            limit: Some(limit),
            cursor,
        };
        let page = platform.control.projections(&query).await?;
        Ok((page.items, page.next_cursor))
    })
    .await?;
    Ok(listed.items)
}

/// The local copy of the catalog of that name.
///
/// # Errors
/// When there is none.
pub async fn projection(name: &str, platform: &Platform) -> Result<ProjectionView, CliError> {
    let mut all = projections(platform).await?.into_iter();
    all.find(|projection| projection.name == name)
        .ok_or_else(|| unknown("projection", name, "projections"))
}
