use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::internal_problem;

/// What the encoding is called.
const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn answer(registry: &Registry) -> Response {
    let mut text = String::new();
    if let Err(error) = encode(&mut text, registry) {
        return internal_problem(&error).into_response();
    }
    let mut response = Response::new(Body::from(text));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}
