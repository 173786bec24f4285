//! A peer of another version, as a proxy before a service: its answers have fields that nobody knows yet, and
//! what is asked of it lacks every field that may be left out.
//!
//! Where a field may be added or left out is read from the service's OpenAPI document, so maps whose keys are
//! anybody's own (labels, parameters, state) are carried as they are.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};

use crate::deployment::Role;

/// The field of a version that is yet to come.
const NEWER: &str = "of_a_newer_version";
const LARGEST: usize = 1 << 30;
/// What is carried byte for byte, because its digest is known elsewhere.
const SEALED: [&str; 4] = ["/proof", "/content", "/inputs/", "/artifacts/"];

/// A word of an enum and the one that stands in its place.
type Replaced = Option<(&'static str, &'static str)>;

/// The proxy. Cheap to clone.
#[derive(Clone)]
pub struct OtherVersion {
    address: String,
    server: String,
    document: Arc<Value>,
    client: reqwest::Client,
    replaced: Arc<Mutex<Replaced>>,
    changed: Arc<Mutex<Changed>>,
}

/// How much the proxy had to do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changed {
    pub added: usize,
    pub left_out: usize,
    pub replaced: usize,
}

const fn document(role: Role) -> &'static str {
    match role {
        Role::ResourceCatalog => include_str!("../../openapi/resource-catalog-service.json"),
        Role::ControlPlane => include_str!("../../openapi/control-plane-service.json"),
        _ => include_str!("../../openapi/execution-plane-service.json"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Fields are added.
    Answer,
    /// Fields are left out.
    Question,
}

impl OtherVersion {
    /// Stands before the service `role` at `server`, on a port of its own.
    pub(crate) async fn before(role: Role, server: &str) -> Self {
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("no TLS is asked for");
        let document = serde_json::from_str(document(role)).expect("a document");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let proxy = Self {
            address: format!("http://{}", listener.local_addr().expect("an address")),
            server: server.to_owned(),
            document: Arc::new(document),
            client,
            replaced: Arc::default(),
            changed: Arc::default(),
        };
        let router = Router::new().fallback(carry).with_state(proxy.clone());
        // Ends with the test.
        tokio::spawn(async move { axum::serve(listener, router).await });
        proxy
    }

    /// Where it answers.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// From now on answers say `new` where they said `known`.
    pub fn replace(&self, known: &'static str, new: &'static str) {
        *self.replaced.lock().unwrap_or_else(PoisonError::into_inner) = Some((known, new));
    }

    /// No longer.
    pub fn heal(&self) {
        *self.replaced.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What it has done so far.
    #[must_use]
    pub fn changed(&self) -> Changed {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let paths = self.document["paths"].as_object()?;
        let fits = |template: &str| {
            let mut parts = template.split('/').zip(path.split('/'));
            template.split('/').count() == path.split('/').count()
                && parts.all(|(own, part)| own == part || own.starts_with('{'))
        };
        let (_, found) = paths.iter().find(|(template, _)| fits(template))?;
        found.get(method.to_ascii_lowercase())
    }

    fn rewritten(&self, way: Way, schema: Option<&Value>, bytes: Bytes) -> Bytes {
        let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else {
            return bytes;
        };
        let mut changed = Changed::default();
        let words = Words {
            document: &self.document,
            way,
        };
        if let Some(schema) = schema {
            words.rewrite(&mut value, schema, &mut changed);
        }
        let replaced = *self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Way::Answer, Some((known, new))) = (way, replaced) {
            replace_word(&mut value, known, new, &mut changed.replaced);
        }
        let mut all = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        all.added += changed.added;
        all.left_out += changed.left_out;
        all.replaced += changed.replaced;
        value.to_string().into()
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

async fn carry(State(proxy): State<OtherVersion>, request: Request) -> Response {
    match carried(&proxy, request).await {
        Ok(response) => response,
        // As when the service itself is away.
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

async fn carried(proxy: &OtherVersion, request: Request) -> Result<Response, reqwest::Error> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let sealed = SEALED.iter().any(|part| path.contains(part));
    let operation = proxy.operation(parts.method.as_str(), &path);
    let mut headers = parts.headers;
    for name in [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
        headers.remove(name);
    }
    let rest = parts.uri.path_and_query().map_or("/", |rest| rest.as_str());
    let body = if is_json(&headers) && !sealed {
        let bytes = to_bytes(body, LARGEST).await.unwrap_or_default();
        let schema = operation.and_then(|operation| operation.pointer("/requestBody/content/application~1json/schema"));
        reqwest::Body::from(proxy.rewritten(Way::Question, schema, bytes))
    } else {
        reqwest::Body::wrap_stream(body.into_data_stream())
    };
    let asked = proxy.client.request(parts.method, format!("{}{rest}", proxy.server));
    let answer = asked.headers(headers).body(body).send().await?;
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove(header::TRANSFER_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    let body = if is_json(&headers) && !sealed {
        let number = status.as_str();
        let schema =
            operation.and_then(|operation| operation["responses"][number].pointer("/content/application~1json/schema"));
        Body::from(proxy.rewritten(Way::Answer, schema, answer.bytes().await?))
    } else {
        Body::from_stream(answer.bytes_stream())
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// A document's words, as another version would have them.
struct Words<'a> {
    document: &'a Value,
    way: Way,
}

impl<'a> Words<'a> {
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => {
                let found = self.document.pointer(reference.trim_start_matches('#'));
                self.resolved(found.expect("a document refers to what it has"))
            }
            None => schema,
        }
    }

    fn rewrite(&self, value: &mut Value, schema: &'a Value, changed: &mut Changed) {
        let schema = self.resolved(schema);
        for part in ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()) {
            if let Some(fitting) = part.iter().find(|part| self.fits(value, part)) {
                self.rewrite(value, fitting, changed);
            }
        }
        match value {
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.rewrite(item, &schema["items"], changed)),
            Value::Object(object) => self.rewrite_object(object, schema, changed),
            _ => {}
        }
    }

    fn rewrite_object(&self, object: &mut Map<String, Value>, schema: &'a Value, changed: &mut Changed) {
        let mut parts = Vec::new();
        self.objects_of(schema, &mut parts);
        let known = |name: &str| parts.iter().find_map(|part| part["properties"].get(name));
        let is_required = |name: &str| {
            let required = |part: &&Value| {
                part["required"]
                    .as_array()
                    .is_some_and(|names| names.contains(&json!(name)))
            };
            parts.iter().any(required)
        };
        let mut needless = Vec::new();
        for (name, value) in object.iter_mut() {
            match known(name) {
                Some(_) if self.way == Way::Question && says_nothing(value) && !is_required(name) => {
                    needless.push(name.clone());
                }
                Some(property) => self.rewrite(value, property, changed),
                None => {
                    if let Some(values) = parts.iter().find_map(|part| part.get("additionalProperties")) {
                        self.rewrite(value, values, changed);
                    }
                }
            }
        }
        for name in needless {
            object.remove(&name);
            changed.left_out += 1;
        }
        let is_map = parts.iter().all(|part| part["properties"].is_null());
        if self.way == Way::Answer && !is_map && !object.contains_key(NEWER) {
            object.insert(NEWER.to_owned(), json!({"known": false, "of": ["the", "future"]}));
            changed.added += 1;
        }
    }

    /// The schemas that describe one object together.
    fn objects_of(&self, schema: &'a Value, into: &mut Vec<&'a Value>) {
        let schema = self.resolved(schema);
        into.push(schema);
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.objects_of(part, into);
        }
    }

    /// Whether a value is of this variant: it has what the variant needs, and its tags are the variant's.
    fn fits(&self, value: &Value, variant: &'a Value) -> bool {
        let Value::Object(object) = value else {
            return value.is_array() && self.resolved(variant)["type"] == "array";
        };
        let mut parts = Vec::new();
        self.objects_of(variant, &mut parts);
        parts.iter().all(|part| {
            let required = part["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            let tags = part["properties"].as_object().into_iter().flatten();
            let is_object = part["type"] == "object" || part["allOf"].is_array();
            is_object
                && required.into_iter().all(|name| object.contains_key(name))
                && tags
                    .filter_map(|(name, property)| Some((name, property["enum"].as_array()?)))
                    .all(|(name, words)| object.get(name).is_none_or(|word| words.contains(word)))
        })
    }
}

/// What leaving the field out says as well.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn replace_word(value: &mut Value, known: &str, new: &str, count: &mut usize) {
    match value {
        Value::String(text) if text == known => {
            new.clone_into(text);
            *count += 1;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_word(item, known, new, count)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| replace_word(member, known, new, count)),
        _ => {}
    }
}
