//! `/metrics`: what a service did and how it stands, in the text form that Prometheus reads.
//!
//! Requests are counted as they are answered. What stands in a database (queues, lags) is looked up when somebody asks,
//! at most once in five seconds, so being watched by many costs no more than by one.
//!
//! Invariants:
//! - Every label has a fixed set of values: methods, route templates, statuses, states. No id, no name that a caller
//!   chose, no organization: what must be kept apart by those is in the API, where it is guarded.
//! - Nobody learns from it what a token would be needed for beyond numbers. It answers callers on this machine; others
//!   only where that is configured ([`MetricsFor::Anyone`]).
//! - A service whose database is away still answers, and says by `platform_figures_current` that figures are old.

mod encode;
mod pools;
mod records;
mod requests;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use futures::future::BoxFuture;
use kernel::with_causes;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::Problem;
use crate::peer::PeerAddress;
use pools::Pools;
use requests::Requests;

pub(crate) use requests::count;

/// How long figures stand.
const FRESH: Duration = Duration::from_secs(5);
/// How long a look at the database may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// A family of one label.
type ByOne<M> = Family<[(&'static str, &'static str); 1], M>;
type Number = Gauge<f64, AtomicU64>;
type Failure = Box<dyn core::error::Error + Send + Sync>;
type Look = Arc<dyn Fn() -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>;

/// Who may read the metrics without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricsFor {
    /// Callers on this machine.
    #[default]
    Loopback,
    /// Whoever reaches the service.
    Anyone,
}

/// The metrics of one service. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Mutex<Registry>,
    requests: Requests,
    pools: Pools,
    current: Number,
    not_audited: Counter,
    looks: Mutex<Vec<Look>>,
    looked: tokio::sync::Mutex<Option<Instant>>,
}

/// One number with a fixed set of values for its label.
#[derive(Clone)]
pub struct Gauges {
    label: &'static str,
    values: &'static [&'static str],
    family: ByOne<Number>,
}

impl Gauges {
    /// Sets the number of `value`; of one that is not in the set, of `other`.
    pub fn set(&self, value: &str, number: f64) {
        let known = self.values.iter().find(|known| **known == value);
        let value = known.copied().unwrap_or("other");
        self.family.get_or_create(&[(self.label, value)]).set(number);
    }

    /// Sets each number; those that are not given are 0.
    pub fn set_all<'a>(&self, numbers: impl IntoIterator<Item = (&'a str, f64)>) {
        for value in self.values {
            self.set(value, 0.0);
        }
        for (value, number) in numbers {
            self.set(value, number);
        }
    }
}

/// A count with a fixed set of values for its label.
#[derive(Clone)]
pub struct Counters {
    label: &'static str,
    values: &'static [&'static str],
    family: ByOne<Counter>,
}

impl Counters {
    /// Counts one of `value`; of one that is not in the set, of `other`.
    pub fn count(&self, value: &str) {
        let known = self.values.iter().find(|known| **known == value);
        let value = known.copied().unwrap_or("other");
        self.family.get_or_create(&[(self.label, value)]).inc();
    }
}

/// A single number.
#[derive(Clone)]
pub struct Figure(Number);

impl Figure {
    /// Sets it.
    pub fn set(&self, number: f64) {
        self.0.set(number);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Those that every service has.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("platform");
        let requests = Requests::registered(&mut registry);
        let pools = Pools::registered(&mut registry);
        let current = Number::default();
        registry.register(
            "figures_current",
            "1 when the figures that stand in the database are of the last five seconds, 0 when it does not answer",
            current.clone(),
        );
        let not_audited = Counter::default();
        registry.register(
            "audit_facts_not_written",
            "Facts of refused commands that could not be written to the audit and are in the log alone",
            not_audited.clone(),
        );
        Self(Arc::new(Inner {
            registry: Mutex::new(registry),
            requests,
            pools,
            current,
            not_audited,
            looks: Mutex::default(),
            looked: tokio::sync::Mutex::default(),
        }))
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a number. `name` is prefixed by `platform_`.
    #[must_use]
    pub fn figure(&self, name: &str, help: &str) -> Figure {
        let number = Number::default();
        self.registry().register(name, help, number.clone());
        Figure(number)
    }

    /// Adds numbers apart by `label`, each of `values` from the beginning on.
    #[must_use]
    pub fn gauges(&self, name: &str, help: &str, label: &'static str, values: &'static [&'static str]) -> Gauges {
        let gauges = Gauges {
            label,
            values,
            family: Family::default(),
        };
        gauges.set_all([]);
        self.registry().register(name, help, gauges.family.clone());
        gauges
    }

    /// Adds counts apart by `label`, each of `values` from the beginning on. `name` gets the suffix `_total`.
    #[must_use]
    pub fn counters(&self, name: &str, help: &str, label: &'static str, values: &'static [&'static str]) -> Counters {
        let family: ByOne<Counter> = Family::default();
        for value in values {
            drop(family.get_or_create(&[(label, *value)]));
        }
        self.registry().register(name, help, family.clone());
        Counters { label, values, family }
    }

    /// Tells of the pools of `database`, as `role`.
    pub fn pools(&self, role: &'static str, database: &database::Database) {
        self.0.pools.add(role, database.clone());
    }

    /// Adds a look at what stands somewhere else, done when somebody asks. It sets numbers that were added before.
    pub fn look<F>(&self, look: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let look: Look = Arc::new(move || Box::pin(look()));
        self.0.looks.lock().unwrap_or_else(PoisonError::into_inner).push(look);
    }

    pub(crate) fn not_audited(&self, facts: usize) {
        self.0.not_audited.inc_by(facts as u64);
    }

    /// Looks, unless somebody did a moment ago.
    async fn refresh(&self) {
        let mut looked = self.0.looked.lock().await;
        if looked.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let looks = self.0.looks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let all = futures::future::try_join_all(looks.iter().map(|look| look()));
        let fault = match tokio::time::timeout(PATIENCE, all).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(with_causes(&*error)),
            Err(_) => Some("the database does not answer in time".to_owned()),
        };
        self.0.current.set(if fault.is_none() { 1.0 } else { 0.0 });
        if let Some(fault) = fault {
            tracing::warn!(fault, "the figures of this service could not be looked up");
        }
        *looked = Some(Instant::now());
    }
}

/// The metrics, for who may read them.
pub(crate) async fn read(
    State((metrics, readers)): State<(Metrics, MetricsFor)>,
    peer: Option<Extension<PeerAddress>>,
) -> Response {
    let is_here = peer.is_none_or(|Extension(PeerAddress(address))| address.to_canonical().is_loopback());
    if readers == MetricsFor::Loopback && !is_here {
        return Problem::forbidden("The metrics are read on the machine of the service only.")
            .remedy("Scrape them from there, or let the service say: metrics = \"anyone\".")
            .into_response();
    }
    metrics.refresh().await;
    metrics.0.pools.look();
    encode::answer(&metrics.registry())
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn who_is_elsewhere_reads_only_what_anyone_may() {
        for (readers, address, status) in [
            (MetricsFor::Loopback, "127.0.0.1", StatusCode::OK),
            (MetricsFor::Loopback, "::ffff:127.0.0.1", StatusCode::OK),
            (MetricsFor::Loopback, "192.0.2.7", StatusCode::FORBIDDEN),
            (MetricsFor::Loopback, "2001:db8::7", StatusCode::FORBIDDEN),
            (MetricsFor::Anyone, "192.0.2.7", StatusCode::OK),
        ] {
            let peer = Extension(PeerAddress(address.parse().unwrap()));
            let answer = read(State((Metrics::new(), readers)), Some(peer)).await;
            assert_eq!(answer.status(), status, "{readers:?} {address}");
        }
    }
}
