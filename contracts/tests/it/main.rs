//! The contracts against the source document, against the committed schemas, and against themselves.

mod properties;
mod schemas;
mod source_shapes;
mod strategies;
