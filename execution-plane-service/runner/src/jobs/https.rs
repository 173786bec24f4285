//! HTTPS requests of api checks.
//!
//! Whether a certificate is good is part of what such a check is asked, so a bad one is a finding with
//! its reason, told apart from a server that could not be talked to.
//!
//! Who may vouch for a server: the authorities that the check names, else those of this machine. The
//! certificate is verified as of now, and once more as of the day until which it has to be good.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use execution_plane_domain::job::{ApiCheck, TlsExpectation};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use reqwest::Url;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};
use tokio_util::task::AbortOnDropHandle;

use super::api_probe::{Answer, Trouble};

const DAY: u64 = 24 * 60 * 60;

/// The authorities that this machine trusts, read when the first check needs them.
#[derive(Default)]
pub(crate) struct MachineRoots(OnceLock<Arc<RootCertStore>>);

impl MachineRoots {
    fn get(&self) -> Arc<RootCertStore> {
        let read = || {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Arc::new(store)
        };
        Arc::clone(self.0.get_or_init(read))
    }
}

/// Sends the request of `check` and reads at most `most` bytes of the answer's body.
pub(super) async fn ask(machine: &MachineRoots, check: &ApiCheck, most: usize) -> Result<Answer, Trouble> {
    let unknown = |error: &dyn std::fmt::Display| Trouble::Unknown(error.to_string());
    let url = Url::parse(&check.url).map_err(|error| unknown(&error))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| {
        if error.kind() == std::io::ErrorKind::ConnectionRefused {
            Trouble::Verdict("connection refused".to_owned())
        } else {
            unknown(&error)
        }
    })?;
    let stream = secured(machine, check.tls.as_ref(), &host, stream).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| unknown(&error))?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let request = request(check, &url).map_err(|error| unknown(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| unknown(&error))?;
    let (head, mut pieces) = answer.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = pieces.frame().await {
        let piece = piece.map_err(|error| Trouble::Unknown(format!("the answer broke off: {error}")))?;
        body.extend_from_slice(piece.data_ref().map_or(&[][..], |data| data));
        if body.len() >= most {
            body.truncate(most);
            break;
        }
    }
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body,
    })
}

fn request(check: &ApiCheck, url: &Url) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let host = url.host_str().unwrap_or_default();
    let authority = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let body = Bytes::from(check.body.clone().unwrap_or_default());
    let mut request = Request::builder()
        .method(check.method.as_str())
        .uri(path)
        .header(HOST, authority)
        .body(Full::new(body))?;
    for (name, value) in &check.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            request.headers_mut().insert(name, value);
        }
    }
    Ok(request)
}

async fn secured(
    machine: &MachineRoots,
    expected: Option<&TlsExpectation>,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Trouble> {
    let name = expected
        .and_then(|expected| expected.server_name.as_deref())
        .unwrap_or(host);
    let roots = match expected.and_then(|expected| expected.ca_pem.as_deref()) {
        Some(pem) => Arc::new(named_roots(pem)?),
        None => machine.get(),
    };
    let days = expected.map_or(0, |expected| expected.min_days_valid);
    let config = configuration(roots, days).map_err(Trouble::Unknown)?;
    let server = match name.parse::<IpAddr>() {
        Ok(address) => ServerName::IpAddress(address.into()),
        Err(_) => ServerName::try_from(name.to_owned())
            .map_err(|_| Trouble::Unknown(format!("{name:?} is not the name of a server")))?,
    };
    let connected = TlsConnector::from(Arc::new(config)).connect(server, stream).await;
    connected.map_err(|error| {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<TlsError>());
        match cause {
            Some(TlsError::InvalidCertificate(fault)) => Trouble::Verdict(told(fault, name, days)),
            Some(other) => Trouble::Unknown(format!("no TLS connection: {other}")),
            None => Trouble::Unknown(format!("no TLS connection: {error}")),
        }
    })
}

fn named_roots(pem: &str) -> Result<RootCertStore, Trouble> {
    let unusable =
        |why: String| Trouble::Unknown(format!("the authorities that the check names cannot be used: {why}"));
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        store.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(unusable("there is no certificate in them".to_owned()));
    }
    Ok(store)
}

fn configuration(roots: Arc<RootCertStore>, days: u32) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(roots, Arc::clone(&provider), days)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// For people: what is wrong with the certificate of `name`.
fn told(fault: &CertificateError, name: &str, days: u32) -> String {
    match fault {
        // An authority of that name is trusted, with another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the certificate's issuer is unknown: no trusted authority has signed it".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate is not for {name}")
        }
        // The verifier's own word, below.
        CertificateError::ApplicationVerificationFailure => {
            format!("the certificate expires within {days} days")
        }
        other => format!("the certificate is not accepted: {other}"),
    }
}

/// rustls' own verification, at two moments.
#[derive(Debug)]
struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    /// Seconds for which the certificate has to be good from now.
    needed: u64,
}

impl Verifier {
    fn new(roots: Arc<RootCertStore>, provider: Arc<CryptoProvider>, days: u32) -> Result<Self, String> {
        let inner = WebPkiServerVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| format!("no authority is trusted here: {error}"))?;
        Ok(Self {
            inner,
            needed: u64::from(days) * DAY,
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let at = |moment| {
            self.inner
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, moment)
        };
        let verified = at(now)?;
        let then = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs().saturating_add(self.needed)));
        at(then)
            .map(|_| verified)
            .map_err(|_| TlsError::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
