//! The HTTP edge: one verb a file. A handler reads the request, has the work done, and writes the answer.

mod access;
mod capabilities;
mod capability_definitions;
mod edges;
mod feed;
mod finalizers;
mod path;
mod query;
mod resource_types;
mod resource_updates;
mod resources;
mod snapshot;
mod validations;
mod watch;

use api_kit::{OpenApiRouter, routes};

use crate::catalog::Catalog;

pub use access::table as access_table;

/// Every route of the service.
pub fn routes() -> OpenApiRouter<Catalog> {
    OpenApiRouter::new()
        .routes(routes!(resource_types::list::list_resource_types))
        .routes(routes!(
            resource_types::get::get_resource_type,
            resource_types::put::put_resource_type
        ))
        .routes(routes!(capability_definitions::list::list_capability_definitions))
        .routes(routes!(
            capability_definitions::get::get_capability_definition,
            capability_definitions::put::put_capability_definition
        ))
        .routes(routes!(
            resources::list::list_resources,
            resources::create::create_resource
        ))
        .routes(routes!(resources::get::get_resource, resources::put::put_resource))
        .routes(routes!(edges::list::list_edges))
        .routes(routes!(edges::put::put_edge, edges::delete::delete_edge))
        .routes(routes!(
            capabilities::put::put_capability,
            capabilities::delete::delete_capability
        ))
        .routes(routes!(resource_updates::post_resource_update))
        .routes(routes!(validations::post_validation))
        .routes(routes!(finalizers::delete_finalizers))
        .routes(routes!(watch::watch_resources))
        .routes(routes!(feed::get_feed))
        .routes(routes!(snapshot::get_snapshot))
}
