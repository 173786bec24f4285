//! One call: built, sent (perhaps more than once), and its answer decoded.

use std::time::Duration;

use bytes::Bytes;
use problem::Problem;
use reqwest::header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH};
use reqwest::{Body, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::{Answer, version_of};
use crate::client::Client;
use crate::error::ClientError;

/// A call under construction.
#[derive(Debug)]
#[must_use = "a call does nothing until it is sent"]
pub struct Call {
    client: Client,
    url: String,
    builder: RequestBuilder,
    repeatable: bool,
}

impl Call {
    pub(crate) const fn new(client: Client, url: String, builder: RequestBuilder, repeatable: bool) -> Self {
        Self {
            client,
            url,
            builder,
            repeatable,
        }
    }

    fn build(mut self, change: impl FnOnce(RequestBuilder) -> RequestBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }

    /// Query parameters from a flat record; absent options are left out.
    pub fn query<T: Serialize + ?Sized>(self, query: &T) -> Self {
        self.build(|builder| builder.query(query))
    }

    /// A JSON body.
    pub fn body<T: Serialize + ?Sized>(self, body: &T) -> Self {
        self.build(|builder| builder.json(body))
    }

    /// A body of bytes.
    pub fn bytes(self, media_type: &'static str, bytes: Bytes) -> Self {
        self.build(|builder| builder.header(CONTENT_TYPE, media_type).body(bytes))
    }

    /// A streamed body. It cannot be repeated, and has no limit of time as a whole.
    pub fn stream(mut self, media_type: &'static str, body: Body) -> Self {
        self.repeatable = false;
        self.within(Duration::MAX)
            .build(|builder| builder.header(CONTENT_TYPE, media_type).body(body))
    }

    /// A header. Not for tokens.
    pub fn header(self, name: HeaderName, value: HeaderValue) -> Self {
        self.build(|builder| builder.header(name, value))
    }

    /// `Idempotency-Key`: the service answers a repeat with the first outcome, so it may be repeated.
    pub fn idempotency_key(self, key: &str) -> Self {
        self.repeatable()
            .build(|builder| builder.header("idempotency-key", key))
    }

    /// `If-Match`: do it only at this version of the object.
    pub fn if_version(self, version: i64) -> Self {
        self.build(|builder| builder.header(IF_MATCH, format!("\"{version}\"")))
    }

    /// Says that repeating is harmless, because the body carries an id of its own.
    pub const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Gives the whole call another limit than 30 seconds.
    pub fn within(self, limit: Duration) -> Self {
        // The clock behind the limit cannot count to `Duration::MAX`; a day is as good as for ever here.
        self.build(|builder| builder.timeout(limit.min(Duration::from_secs(86_400))))
    }

    /// Sends it and gives the raw answer, if it is not an error.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] after the last try, [`ClientError::Problem`] when it was refused.
    pub async fn send(self) -> Result<Response, ClientError> {
        let Self {
            client,
            url,
            mut builder,
            repeatable,
        } = self;
        if let Some(token) = client.token()? {
            builder = builder.bearer_auth(token.expose());
        }
        let retries = client.retries();
        let mut failed = 0;
        loop {
            let again = if repeatable && failed + 1 < retries.tries {
                builder.try_clone()
            } else {
                None
            };
            match (builder.send().await, again) {
                (Ok(response), _) => return refuse_errors(url, response).await,
                (Err(source), _) if source.is_builder() => {
                    return Err(ClientError::Request {
                        url,
                        source: source.without_url(),
                    });
                }
                (Err(_), Some(next)) => {
                    failed += 1;
                    tokio::time::sleep(retries.pause(failed)).await;
                    builder = next;
                }
                (Err(source), None) => {
                    return Err(ClientError::Unreachable {
                        url,
                        source: source.without_url(),
                    });
                }
            }
        }
    }

    /// Sends it and decodes the JSON answer.
    ///
    /// # Errors
    /// As [`Call::send`], or the answer is not a `T`.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        self.answer().await.map(|answer| answer.body)
    }

    /// Sends it and decodes the JSON answer, with its status and version.
    ///
    /// # Errors
    /// As [`Call::json`].
    pub async fn answer<T: DeserializeOwned>(self) -> Result<Answer<T>, ClientError> {
        let url = self.url.clone();
        let response = self
            .build(|builder| builder.header(ACCEPT, "application/json"))
            .send()
            .await?;
        let status = response.status().as_u16();
        let version = header(response.headers(), &ETAG).and_then(version_of);
        let bytes = read(&url, response).await?;
        let body = serde_json::from_slice(&bytes).map_err(|source| ClientError::Answer {
            url,
            source: source.into(),
        })?;
        Ok(Answer { status, version, body })
    }

    /// Sends it and reads no body.
    ///
    /// # Errors
    /// As [`Call::send`].
    pub async fn done(self) -> Result<(), ClientError> {
        self.send().await.map(drop)
    }

    /// Sends it and gives the whole body.
    ///
    /// # Errors
    /// As [`Call::send`], or the body broke off.
    pub async fn whole(self) -> Result<Bytes, ClientError> {
        let url = self.url.clone();
        let response = self.send().await?;
        read(&url, response).await
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A body that breaks off is a call without an answer: nothing is known of what came of it.
async fn read(url: &str, response: Response) -> Result<Bytes, ClientError> {
    let unreachable = |source: reqwest::Error| ClientError::Unreachable {
        url: url.to_owned(),
        source: source.without_url(),
    };
    response.bytes().await.map_err(unreachable)
}

async fn refuse_errors(url: String, response: Response) -> Result<Response, ClientError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let is_problem =
        header(response.headers(), &CONTENT_TYPE).is_some_and(|kind| kind.starts_with(problem::MEDIA_TYPE));
    if is_problem {
        let bytes = read(&url, response).await?;
        if let Ok(problem) = serde_json::from_slice::<Problem>(&bytes) {
            return Err(ClientError::Problem(Box::new(problem)));
        }
    }
    Err(ClientError::NotAPlatform {
        url,
        status: status.as_u16(),
    })
}
