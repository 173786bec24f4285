use api_kit::{Caller, IdempotentJson, Problem, StoredResponse};
use axum::extract::State;
use resource_catalog_api::{CreateResource, Resource};

use crate::catalog::Catalog;
use crate::{resources, wire};

/// Creates a resource under an id that nothing has yet.
#[utoipa::path(
    post,
    path = "/v1/resources",
    tag = "resources",
    request_body = CreateResource,
    responses((status = 201, description = "The new resource", body = Resource,
        headers(("ETag" = String), ("Location" = String))))
)]
pub async fn create_resource(
    State(catalog): State<Catalog>,
    caller: Caller,
    asked: IdempotentJson<CreateResource>,
) -> Result<StoredResponse, Problem> {
    let (id, desired) = asked.body.into_apply();
    let desired = wire::resource::desired(desired);
    resources::create(&catalog, &caller, &id, desired, &asked.request).await
}
