//! The client of one service, for one organization at a time.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use identity::{BearerToken, TokenSource};
use kernel::id::OrganizationId;
use reqwest::Method;

use crate::call::Call;
use crate::error::ClientError;
use crate::retry::Retries;

/// How long an unused connection is kept. Shorter than a service waits for a further request on it, so that
/// no request goes out on a connection that is just being closed.
const IDLE: Duration = Duration::from_secs(10);
/// How long a call may take when nothing else is said.
const PATIENCE: Duration = Duration::from_secs(30);
/// An event stream that is silent for longer than three heartbeats is dead.
const SILENCE: Duration = Duration::from_secs(50);

/// A client of one service. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Arc<str>,
    tokens: Option<Arc<dyn TokenSource>>,
    organization: Option<OrganizationId>,
    retries: Retries,
}

impl Client {
    /// A client of the service at `base`, like `http://127.0.0.1:7301`. Without `tokens` only open
    /// endpoints (health, the API's description) answer.
    ///
    /// # Errors
    /// [`ClientError::Address`].
    pub fn new(base: &str, tokens: Option<Arc<dyn TokenSource>>) -> Result<Self, ClientError> {
        let refuse = || ClientError::Address(base.to_owned());
        let parsed = reqwest::Url::parse(base).map_err(|_| refuse())?;
        if parsed.scheme() != "http" || parsed.host_str().is_none() || parsed.query().is_some() {
            return Err(refuse());
        }
        let http = reqwest::Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(Duration::from_secs(5))
            .read_timeout(SILENCE)
            .pool_max_idle_per_host(64)
            .pool_idle_timeout(IDLE)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|_| refuse())?;
        let base = base.trim_end_matches('/').into();
        Ok(Self {
            http,
            base,
            tokens,
            organization: None,
            retries: Retries::default(),
        })
    }

    /// The same client acting for `organization`: its tokens are made for it.
    #[must_use]
    pub fn acting_for(&self, organization: OrganizationId) -> Self {
        Self {
            organization: Some(organization),
            ..self.clone()
        }
    }

    /// The same client with another schedule of retries.
    #[must_use]
    pub fn with_retries(&self, retries: Retries) -> Self {
        Self {
            retries,
            ..self.clone()
        }
    }

    /// The service's address, without a slash at the end.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Begins a call of any method. `path` starts with a slash; its parts are escaped with [`segment`].
    pub fn call(&self, method: Method, path: &str) -> Call {
        let url = format!("{}{path}", self.base);
        let harmless = matches!(method, Method::GET | Method::PUT | Method::DELETE | Method::HEAD);
        let builder = self.http.request(method, &url).timeout(PATIENCE);
        Call::new(self.clone(), url, builder, harmless)
    }

    /// Begins a GET.
    pub fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    /// Begins a POST. It is repeated only when marked [`Call::repeatable`].
    pub fn post(&self, path: &str) -> Call {
        self.call(Method::POST, path)
    }

    /// Begins a PUT.
    pub fn put(&self, path: &str) -> Call {
        self.call(Method::PUT, path)
    }

    /// Begins a DELETE.
    pub fn delete(&self, path: &str) -> Call {
        self.call(Method::DELETE, path)
    }

    pub(crate) const fn retries(&self) -> Retries {
        self.retries
    }

    pub(crate) fn token(&self) -> Result<Option<BearerToken>, ClientError> {
        let source = self.tokens.as_ref();
        source
            .map(|tokens| tokens.token(self.organization, Utc::now()).map_err(ClientError::Token))
            .transpose()
    }
}

/// One part of a path, escaped: `segment("a/b")` is `a%2Fb`.
#[must_use]
pub fn segment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_addresses_of_a_host_are_services() {
        for bad in ["", "127.0.0.1:80", "ftp://x", "http://", "unix:/x", "http://h/?a=b"] {
            assert!(
                matches!(Client::new(bad, None), Err(ClientError::Address(_))),
                "{bad:?}"
            );
        }
        assert_eq!(Client::new("http://h:1/", None).unwrap().base(), "http://h:1");
    }

    #[test]
    fn parts_of_a_path_cannot_leave_their_place() {
        assert_eq!(segment("deploy[node/web-1]"), "deploy%5Bnode%2Fweb-1%5D");
        assert_eq!(segment("a?b#c"), "a%3Fb%23c");
    }
}
