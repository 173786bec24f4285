//! What the service is told from outside.

use std::time::Duration;

use api_kit::MetricsFor;
use database::{PoolSizes, ServiceUrls};
use identity::TrustStore;

/// Where the service's database is and whom it believes.
#[derive(Debug, Clone)]
pub struct Config {
    pub database: ServiceUrls,
    /// Of the api role; the worker role needs two connections.
    pub pool_sizes: PoolSizes,
    pub trust: TrustStore,
    /// How long the feed keeps events that every known consumer has.
    pub feed_retention: Duration,
    /// Who may read `/metrics`.
    pub metrics_for: MetricsFor,
}

impl Config {
    /// The usual pools.
    #[must_use]
    pub fn new(database: ServiceUrls, trust: TrustStore) -> Self {
        let pool_sizes = PoolSizes {
            hot: 8,
            ..PoolSizes::default()
        };
        Self {
            database,
            pool_sizes,
            trust,
            feed_retention: outbox::RETENTION,
            metrics_for: MetricsFor::default(),
        }
    }
}
