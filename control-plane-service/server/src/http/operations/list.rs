use api_kit::{Caller, FieldError, Limit, Paging, Problem, StrictQuery, database_problem};
use axum::Json;
use axum::extract::State;
use control_plane_api::{ListOperationsQuery, OperationPage};
use kernel::id::OperationId;

use crate::http::fault::of_store;
use crate::http::{App, head};
use crate::read::operations::{Filter, page};

/// A page of operations, newest first.
#[utoipa::path(get, path = "/v1/operations", tag = "operations", params(ListOperationsQuery),
    responses((status = 200, body = OperationPage)))]
pub async fn list_operations(
    caller: Caller,
    state: State<App>,
    query: StrictQuery<ListOperationsQuery>,
) -> Result<Json<OperationPage>, Problem> {
    let StrictQuery(query) = query;
    let key = (
        "operations",
        caller.organization,
        query.state,
        query.template.clone(),
        query.environment.clone(),
        query.selector.clone(),
    );
    let limit = limit(query.limit)?;
    let filter = filter(&query)?;
    let paging: Paging<_, OperationId> = Paging::begin(key, query.cursor.as_deref(), limit, head(&state.feed)).await?;
    let mut tx = state
        .read(caller.organization)
        .await
        .map_err(|error| database_problem(&error))?;
    let mut items = page(&mut tx, &filter, paging.after, paging.peek())
        .await
        .map_err(of_store)?;
    let next_cursor = paging.cut(&mut items, |last| last.id);
    Ok(Json(OperationPage {
        items,
        next_cursor,
        revision: paging.revision,
    }))
}

/// How many items a page has: a number outside 1 to 1,000 is refused, not bent.
pub fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked {
        None => Ok(Limit::default().get()),
        Some(limit) if (1..=Limit::MAX).contains(&limit) => Ok(limit),
        Some(limit) => Err(Problem::invalid([FieldError::new(
            "/limit",
            "invalid",
            format!("{limit} is not a number from 1 to {}", Limit::MAX),
        )])),
    }
}

fn filter(query: &ListOperationsQuery) -> Result<Filter, Problem> {
    let invalid = |pointer: &str, detail: String| Problem::invalid([FieldError::new(pointer, "invalid", detail)]);
    let (pack, template) = match query.template.as_deref().map(|text| text.split_once('/')) {
        None => (None, None),
        Some(Some((pack, template))) => (Some(pack.to_owned()), Some(template.to_owned())),
        Some(None) => return Err(invalid("/template", "a template is named PACK/TEMPLATE".to_owned())),
    };
    let selector = query
        .selector
        .as_deref()
        .map(kernel::Selector::parse)
        .transpose()
        .map_err(|error| invalid("/selector", error.to_string()))?;
    Ok(Filter {
        state: query.state,
        pack,
        template,
        environment: query.environment.clone(),
        selector,
    })
}
