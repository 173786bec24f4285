//! No operation answers with a status that its document does not declare.
//!
//! Checked on every answer of a build with debug assertions, so that every test of a service holds its
//! document against what the service really does. Such an answer becomes a 500 there.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::Method;
use utoipa::openapi::OpenApi;

use crate::openapi::operations;

/// The statuses of every operation, by path template and method.
pub(crate) struct Declared(HashMap<String, HashMap<&'static str, BTreeSet<u16>>>);

impl Declared {
    /// What `document` declares.
    pub(crate) fn of(document: &OpenApi) -> Arc<Self> {
        let mut declared: HashMap<String, HashMap<_, _>> = HashMap::new();
        for (method, path, operation) in operations(document) {
            let statuses = operation.responses.responses.keys();
            let statuses = statuses.filter_map(|status| status.parse().ok()).collect();
            declared.entry(path.to_owned()).or_default().insert(method, statuses);
        }
        Arc::new(Self(declared))
    }

    /// Whether the operation may answer so. What the document does not have (a wrong method, an unknown path)
    /// is no operation.
    fn allows(&self, method: &Method, path: &str, status: u16) -> bool {
        // A HEAD is answered as a GET.
        let method = if method == Method::HEAD { "GET" } else { method.as_str() };
        let statuses = self.0.get(path).and_then(|methods| methods.get(method));
        statuses.is_none_or(|statuses| statuses.contains(&status))
    }
}

pub(crate) async fn check(State(declared): State<Arc<Declared>>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    let status = response.status();
    debug_assert!(
        declared.allows(&method, path, status.as_u16()),
        "{method} {path} answered {status}, which its document does not declare"
    );
    response
}
