//! An HTTP request of the runner's own, as a check asks for it.

use std::time::Duration;

use execution_plane_domain::job::ApiCheck;
use futures::StreamExt;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::context::JobContext;
use super::https;
use super::probes::{KEPT, Sight};

/// What came back.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Why nothing came back.
pub(super) enum Trouble {
    /// That is an answer too: nobody listens, or who does is not who the check expects.
    Verdict(String),
    /// It could not be looked.
    Unknown(String),
}

/// Sends the request and judges the answer.
pub(super) async fn api(context: &JobContext, check: &ApiCheck) -> Sight {
    let asked = format!("{} {}", check.method, check.url);
    let limit = Duration::from_secs(check.timeout_seconds.into());
    let asking = async {
        if check.url.starts_with("https://") {
            https::ask(&context.tools.machine_roots, check, KEPT).await
        } else {
            plain(context, check).await
        }
    };
    let answer = match tokio::time::timeout(limit, asking).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(Trouble::Verdict(why))) => {
            let source = format!("{asked}\n{why}\n").into_bytes();
            return Sight::judged(Err(why), source);
        }
        Ok(Err(Trouble::Unknown(why))) => return Sight::inconclusive(why, &asked),
        Err(_) => return Sight::inconclusive(format!("no whole answer within {} s", limit.as_secs()), &asked),
    };
    let mut source = format!("{asked}\n{}\n", answer.status).into_bytes();
    for (name, value) in &answer.headers {
        source.extend_from_slice(name.as_str().as_bytes());
        source.extend_from_slice(b": ");
        source.extend_from_slice(value.as_bytes());
        source.push(b'\n');
    }
    source.push(b'\n');
    source.extend_from_slice(&answer.body);
    Sight::judged(check.expect.judge(answer.status.as_u16(), &answer.body), source)
}

/// Without TLS.
async fn plain(context: &JobContext, check: &ApiCheck) -> Result<Answer, Trouble> {
    let answer = request(context, check).await.map_err(|error| {
        if error.is_connect() && refused(&error) {
            Trouble::Verdict("connection refused".to_owned())
        } else {
            Trouble::Unknown(kernel::with_causes(&error))
        }
    })?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body = kept_body(answer)
        .await
        .map_err(|error| Trouble::Unknown(format!("the answer broke off: {}", kernel::with_causes(&error))))?;
    Ok(Answer { status, headers, body })
}

async fn request(context: &JobContext, check: &ApiCheck) -> Result<reqwest::Response, reqwest::Error> {
    let method = reqwest::Method::from_bytes(check.method.as_bytes()).unwrap_or(reqwest::Method::GET);
    let mut headers = HeaderMap::new();
    for (name, value) in &check.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    let mut request = context.tools.http.request(method, &check.url).headers(headers);
    if let Some(body) = &check.body {
        request = request.body(body.clone());
    }
    request.send().await
}

async fn kept_body(answer: reqwest::Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    let mut pieces = answer.bytes_stream();
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece?);
        if body.len() >= KEPT {
            body.truncate(KEPT);
            break;
        }
    }
    Ok(body)
}

fn refused(error: &reqwest::Error) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = source {
        let io = cause.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        source = cause.source();
    }
    false
}
