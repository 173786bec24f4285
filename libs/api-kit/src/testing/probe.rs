//! Sending one request and holding the answer against what is expected.

use reqwest::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use reqwest::{Client, Method, RequestBuilder, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Walked;
use crate::Problem;

/// Sends and judges.
pub(super) struct Probe {
    client: Client,
    base_url: String,
    checks: usize,
    faults: Vec<String>,
}

/// What an answer must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub status: u16,
    /// One of these codes; any when empty.
    pub codes: &'a [&'a str],
    /// A fault at this pointer with this code.
    pub error: Option<(&'a str, &'a str)>,
}

impl Expected<'static> {
    pub(super) const fn status(status: u16) -> Self {
        Self {
            status,
            codes: &[],
            error: None,
        }
    }
}

impl Probe {
    pub(super) fn new(base_url: &str) -> Self {
        let client = Client::builder().no_proxy().build();
        Self {
            client: client.expect("a plain HTTP client can be built"),
            base_url: base_url.trim_end_matches('/').to_owned(),
            checks: 0,
            faults: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> Walked {
        Walked {
            checks: self.checks,
            faults: self.faults,
        }
    }

    pub(super) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).expect("the walker uses HTTP methods");
        self.client.request(method, format!("{}{path}", self.base_url))
    }

    /// Notes a fault when `holds` is false.
    pub(super) fn check(&mut self, what: &str, holds: bool, found: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            self.faults.push(format!("{what}: {}", found()));
        }
    }

    /// Sends; a server that does not answer is a fault.
    pub(super) async fn send(&mut self, what: &str, request: RequestBuilder) -> Option<Response> {
        match request.send().await {
            Ok(response) => Some(response),
            Err(error) => {
                self.checks += 1;
                self.faults.push(format!("{what}: no answer: {error:?}"));
                None
            }
        }
    }

    /// Sends and expects a problem.
    pub(super) async fn expect(&mut self, what: &str, request: RequestBuilder, expected: Expected<'_>) {
        let Some(response) = self.send(what, request).await else {
            return;
        };
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = response.text().await.unwrap_or_default();
        self.check(what, status == expected.status, || {
            format!(
                "expected {}, got {status}: {}",
                expected.status,
                body.chars().take(300).collect::<String>()
            )
        });
        if status != expected.status {
            return;
        }
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        self.check(what, kind == problem::MEDIA_TYPE, || {
            format!("the answer is {kind:?}, not a problem")
        });
        self.check(what, headers.contains_key("x-request-id"), || {
            "the answer has no x-request-id".to_owned()
        });
        if status == 401 {
            self.check(what, headers.contains_key(WWW_AUTHENTICATE), || {
                "no WWW-Authenticate".to_owned()
            });
        }
        if status == 405 {
            self.check(what, headers.contains_key(ALLOW), || "no Allow".to_owned());
        }
        match serde_json::from_str::<Problem>(&body) {
            Ok(problem) => self.judge(what, &problem, expected),
            Err(error) => self.check(what, false, || format!("the problem is not understood: {error}")),
        }
    }

    fn judge(&mut self, what: &str, problem: &Problem, expected: Expected<'_>) {
        self.check(what, problem.status == expected.status, || {
            format!("the body says {}", problem.status)
        });
        let is_code = problem.code.starts_with(|c: char| c.is_ascii_lowercase())
            && problem
                .code
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        self.check(what, is_code, || format!("{:?} is no code", problem.code));
        self.check(what, !problem.title.is_empty(), || {
            "the problem has no title".to_owned()
        });
        if !expected.codes.is_empty() {
            let is_one = expected.codes.contains(&problem.code.as_str());
            self.check(what, is_one, || {
                format!("the code is {:?}, expected {:?}", problem.code, expected.codes)
            });
        }
        if let Some((pointer, code)) = expected.error {
            let is_named = problem.errors.iter().any(|e| e.pointer == pointer && e.code == code);
            self.check(what, is_named, || {
                format!("no error {code:?} at {pointer:?} among {:?}", problem.errors)
            });
        }
    }

    /// The status that only the head of a request with a huge declared body gets.
    pub(super) async fn status_of_head(&mut self, head: &str) -> Option<u16> {
        let address = self.base_url.strip_prefix("http://")?.to_owned();
        let mut stream = TcpStream::connect(&address).await.ok()?;
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut chunk = [0; 1024];
            match stream.read(&mut chunk).await {
                Ok(count) if count > 0 => answer.extend_from_slice(&chunk[..count]),
                _ => break,
            }
        }
        String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
    }
}
