//! Requests, by what was asked and how it was answered.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::Metrics;

/// Upper bounds in seconds: from below a commit to a long poll's end.
const BOUNDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    method: &'static str,
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    route: String,
    status: u16,
}

pub(super) struct Requests {
    answered: Family<Answered, Counter>,
    seconds: Family<Asked, Histogram, fn() -> Histogram>,
    under_way: Gauge,
}

fn histogram() -> Histogram {
    Histogram::new(BOUNDS)
}

impl Requests {
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let requests = Self {
            answered: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            under_way: Gauge::default(),
        };
        registry.register(
            "http_requests",
            "Requests answered, by route template and status",
            requests.answered.clone(),
        );
        registry.register(
            "http_request_seconds",
            "Time until the head of the answer, by route template; long polls wait on purpose",
            requests.seconds.clone(),
        );
        registry.register(
            "http_requests_under_way",
            "Requests that are not answered yet",
            requests.under_way.clone(),
        );
        requests
    }
}

/// One of a fixed set: a method can be any word.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Counts a request once its answer begins, or its caller has gone.
struct UnderWay<'a>(&'a Gauge);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

pub(crate) async fn count(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    // A path that no route has could be anything.
    let route = path.map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let method = method(request.method());
    let requests = &metrics.0.requests;
    requests.under_way.inc();
    let under_way = UnderWay(&requests.under_way);
    let since = Instant::now();
    let response = next.run(request).await;
    let asked = Asked { method, route };
    requests
        .seconds
        .get_or_create(&asked)
        .observe(since.elapsed().as_secs_f64());
    let answered = Answered {
        method,
        route: asked.route,
        status: response.status().as_u16(),
    };
    requests.answered.get_or_create(&answered).inc();
    drop(under_way);
    response
}
