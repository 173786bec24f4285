//! api checks over HTTPS, with an authority made for this one test.

use std::sync::Arc;

use contracts::{EvidenceResult, ExecutionResult};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::harness::{Job, Runner};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server that says hello; its certificate is for `names` and ends with `last_year`.
async fn server(authority: &Authority, names: &[&str], last_year: i32) -> u16 {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(last_year, 12, 31);
    let certificate: CertificateDer<'static> = params.signed_by(&key, authority).unwrap().into();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that does not like the certificate goes away here.
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    stream.read_buf(&mut request).await.unwrap();
                }
                let asked = String::from_utf8(request).unwrap();
                let body = format!("hello {}", asked.lines().next().unwrap());
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
            });
        }
    });
    port
}

async fn checked(runner: &Runner, url: &str, tls: Value) -> (EvidenceResult, String) {
    let check = json!({"name": "ok", "capability": "web.http", "type": "api_check", "url": url, "tls": tls,
        "expect": {"body_contains": "hello GET /page?x=1 HTTP/1.1"}});
    let job = Job::new("verification", json!({"checks": [check]})).with("/output_contract/evidence", json!(["ok"]));
    let result: ExecutionResult = runner.plane.result(runner.submit(job)).await;
    (result.evidence[0].result, result.exit_summary.message)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_servers_certificate_passes_or_the_check_says_what_is_wrong_with_it() {
    let runner = Runner::start().await;
    let (ours, theirs, namesake) = (authority("ours"), authority("theirs"), authority("ours"));
    let good = server(&ours, &["127.0.0.1", "web.example"], 4000).await;
    let expired = server(&ours, &["127.0.0.1"], 2001).await;
    let named = json!({"ca_pem": ours.pem()});
    let with = |more: Value| {
        let mut tls = named.clone();
        tls.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tls
    };
    let cases = [
        (good, named.clone(), None),
        (
            good,
            with(json!({"server_name": "web.example", "min_days_valid": 365})),
            None,
        ),
        (good, json!({"ca_pem": theirs.pem()}), Some("issuer is unknown")),
        (good, json!({"ca_pem": namesake.pem()}), Some("issuer is unknown")),
        (
            good,
            with(json!({"server_name": "db.example"})),
            Some("is not for db.example"),
        ),
        (good, with(json!({"min_days_valid": 36500})), None),
        (expired, named.clone(), Some("has expired")),
    ];
    for (port, tls, wrong) in cases {
        let (result, message) = checked(&runner, &format!("https://127.0.0.1:{port}/page?x=1"), tls.clone()).await;
        match wrong {
            None => assert_eq!(result, EvidenceResult::Passed, "{tls}: {message}"),
            Some(wrong) => assert!(
                result == EvidenceResult::Failed && message.contains(wrong),
                "{tls}: {result:?} {message}"
            ),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_ends_too_soon_fails_and_one_of_an_authority_that_the_machine_does_not_know() {
    let runner = Runner::start().await;
    let authority = authority("ours");
    let year = chrono::Datelike::year(&chrono::Utc::now());
    let port = server(&authority, &["127.0.0.1"], year + 1).await;
    let url = format!("https://127.0.0.1:{port}/page?x=1");
    let tls = json!({"ca_pem": authority.pem(), "min_days_valid": 1000});
    let (result, message) = checked(&runner, &url, tls).await;
    assert_eq!(result, EvidenceResult::Failed);
    assert!(message.contains("expires within 1000 days"), "{message}");
    let (result, message) = checked(&runner, &url, Value::Null).await;
    assert_ne!(result, EvidenceResult::Passed);
    assert!(
        message.contains("issuer is unknown") || message.contains("no authority is trusted"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_or_none_at_all_is_told_as_such() {
    let runner = Runner::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let tls = json!({"ca_pem": authority("any").pem()});
    let url = format!("https://127.0.0.1:{port}/");
    let (result, message) = checked(&runner, &url, tls.clone()).await;
    assert_eq!(result, EvidenceResult::Inconclusive);
    assert!(message.contains("no TLS connection"), "{message}");
    plain.await.unwrap();
    let (result, message) = checked(&runner, &url, tls).await;
    assert_eq!(result, EvidenceResult::Failed);
    assert!(message.contains("connection refused"), "{message}");
}
