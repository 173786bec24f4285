//! How the service is set up.

use std::sync::Arc;
use std::time::Duration;

use api_kit::MetricsFor;
use chrono::TimeDelta;
use database::Database;
use execution_plane_domain::lease::LeaseTerms;
use execution_plane_domain::secrets::SecretRules;
use execution_plane_ports::BlobStore;
use identity::{PrivateKey, TrustStore};

/// Times and limits. The defaults suit a deployment; tests shorten the times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub lease: LeaseTerms,
    /// Which secrets whose jobs may name.
    pub secrets: SecretRules,
    /// How long a runner's token holds; it rotates before.
    pub runner_token: TimeDelta,
    pub max_content_bytes: u64,
    pub max_artifact_bytes: u64,
    /// All output of one attempt.
    pub max_output_bytes: u64,
    /// How long the feed keeps events that every known consumer has.
    pub feed_retention: Duration,
    /// Who may read `/metrics`.
    pub metrics_for: MetricsFor,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lease: LeaseTerms {
                lease: TimeDelta::seconds(30),
                grace: TimeDelta::seconds(15),
                comeback: TimeDelta::seconds(30),
            },
            secrets: SecretRules::default(),
            runner_token: TimeDelta::hours(12),
            max_content_bytes: 256 * 1024 * 1024,
            max_artifact_bytes: 1024 * 1024 * 1024,
            max_output_bytes: 1024 * 1024 * 1024,
            feed_retention: outbox::RETENTION,
            metrics_for: MetricsFor::default(),
        }
    }
}

/// What the service is given.
#[derive(Clone)]
pub struct Dependencies {
    /// As `execution_plane_api`.
    pub api: Database,
    /// As `execution_plane_worker`.
    pub worker: Database,
    pub blobs: Arc<dyn BlobStore>,
    /// Whom to believe, the deployment's issuer and the other services.
    pub trust: TrustStore,
    /// Signs the tokens of runners; the service itself trusts it for runners alone.
    pub runner_key: PrivateKey,
}
