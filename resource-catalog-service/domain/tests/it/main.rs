//! The rules of the catalog, as specifications and as properties.

mod applying;
mod fixtures;
mod inheritance;
mod updating;
