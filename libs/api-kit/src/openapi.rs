//! What every OpenAPI document of the platform has in common, added in one place.

use std::collections::BTreeSet;

use utoipa::openapi::content::{Content, ContentBuilder};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ObjectBuilder, OpenApi, PathItem, Ref, RefOr, Required, ResponseBuilder, Schema, Type};
use utoipa::{PartialSchema as _, ToSchema as _};

use crate::access::{Access, AccessTable, Rule};
use crate::{Limit, Problem};

/// The document's name for the bearer token.
const BEARER: &str = "bearer";

/// Every operation of a document: method, path template, operation.
pub(crate) fn operations(document: &OpenApi) -> impl Iterator<Item = (&'static str, &str, &Operation)> {
    document.paths.paths.iter().flat_map(|(path, item)| {
        let of_item = [
            ("GET", &item.get),
            ("PUT", &item.put),
            ("POST", &item.post),
            ("DELETE", &item.delete),
            ("PATCH", &item.patch),
        ];
        of_item
            .into_iter()
            .filter_map(move |(method, operation)| Some((method, path.as_str(), operation.as_ref()?)))
    })
}

fn operations_mut(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    [
        ("GET", &mut item.get),
        ("PUT", &mut item.put),
        ("POST", &mut item.post),
        ("DELETE", &mut item.delete),
        ("PATCH", &mut item.patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Adds the bearer scheme, problem answers, and what the table asks of each request.
pub(crate) fn complete(document: &mut OpenApi, table: &AccessTable, body_limit: usize) {
    let components = document.components.get_or_insert_default();
    components.schemas.insert("Problem".to_owned(), Problem::schema());
    // Queries refer to it, and what parameters refer to is not gathered.
    components.schemas.insert("Limit".to_owned(), Limit::schema());
    let mut named = Vec::new();
    Problem::schemas(&mut named);
    components.schemas.extend(named);
    components
        .responses
        .insert("Problem".to_owned(), problem_response().into());
    let bearer = SecurityScheme::Http(
        Http::builder()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .build(),
    );
    components.security_schemes.insert(BEARER.to_owned(), bearer.into());
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations_mut(item) {
            let method = method.parse().expect("the methods above are HTTP methods");
            if let Some(rule) = table.find(&method, path) {
                describe(operation, rule, body_limit);
            }
        }
    }
}

fn describe(operation: &mut Operation, rule: &Rule, body_limit: usize) {
    for (media_type, content) in contents(operation) {
        describe_content(media_type, content);
    }
    operation.security = Some(match rule.access {
        Access::Public => Vec::new(),
        Access::Roles(_) => vec![SecurityRequirement::new(BEARER, Vec::<String>::new())],
    });
    let mut extensions = ExtensionsBuilder::new();
    if let Access::Roles(roles) = rule.access {
        extensions = extensions.add("x-roles", roles.iter().map(|role| role.as_str()).collect::<Vec<_>>());
    }
    if operation.request_body.is_some() {
        extensions = extensions.add("x-body-limit", rule.body_limit.unwrap_or(body_limit));
    }
    if let Some(keeping) = rule.audit {
        extensions = extensions.add("x-audit", keeping.told());
    }
    operation.extensions.get_or_insert_default().merge(extensions.build());
    if rule.needs_idempotency_key {
        add_header(operation, idempotency_key());
    }
    if rule.takes_if_match {
        add_header(operation, if_match(rule.refuses.contains(&428)));
    }
    for status in refusals(operation, rule) {
        operation
            .responses
            .responses
            .entry(status.to_string())
            .or_insert_with(|| RefOr::Ref(Ref::from_response_name("Problem")));
    }
}

/// The statuses of the problems that an operation may answer with: what each of its parts can be refused for.
fn refusals(operation: &Operation, rule: &Rule) -> BTreeSet<u16> {
    let parameters = operation.parameters.iter().flatten();
    let places: Vec<(ParameterIn, &str)> = parameters
        .filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some((parameter.parameter_in.clone(), parameter.name.as_str())),
            RefOr::Ref(_) => None,
        })
        .collect();
    let takes = |place: ParameterIn| places.iter().any(|(other, _)| *other == place);
    let has = |name: &str| places.iter().any(|(_, other)| other.eq_ignore_ascii_case(name));
    let raw = "application/octet-stream";
    let body = operation.request_body.as_ref().map(|body| match body {
        RefOr::T(body) => body.content.contains_key(raw),
        RefOr::Ref(_) => false,
    });
    let mut statuses = BTreeSet::from([500, 503]);
    let causes: [(bool, &[u16]); 8] = [
        (rule.access != Access::Public, &[401, 403]),
        (takes(ParameterIn::Path), &[404]),
        (takes(ParameterIn::Query), &[422]),
        (has("Last-Event-ID"), &[400]),
        (body.is_some(), &[400, 413, 422]),
        // Bytes are of any kind.
        (body == Some(false), &[415]),
        (rule.needs_idempotency_key, &[400, 422]),
        (rule.takes_if_match, &[400, 412]),
    ];
    for (_, also) in causes.iter().filter(|(applies, _)| *applies) {
        statuses.extend(*also);
    }
    statuses.extend(rule.refuses);
    statuses
}

/// Every body of an operation, with its media type.
fn contents(operation: &mut Operation) -> impl Iterator<Item = (&String, &mut Content)> {
    let request = operation.request_body.iter_mut().filter_map(inline);
    let request = request.flat_map(|body| &mut body.content);
    let responses = operation.responses.responses.values_mut().filter_map(inline);
    let responses = responses.flat_map(|response| &mut response.content);
    let all = request.chain(responses);
    all.filter_map(|(media_type, content)| Some((media_type, inline(content)?)))
}

const fn inline<T>(described: &mut RefOr<T>) -> Option<&mut T> {
    match described {
        RefOr::T(described) => Some(described),
        RefOr::Ref(_) => None,
    }
}

/// Bytes have a media type and no schema; a schema of a stream is that of one event, its data told beside it.
fn describe_content(media_type: &str, content: &mut Content) {
    match media_type {
        "text/event-stream" => content.schema = content.schema.take().map(event_of),
        "application/octet-stream" | "application/x-tar" => content.schema = None,
        _ => {}
    }
}

fn event_of(data: RefOr<Schema>) -> RefOr<Schema> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let extensions = ExtensionsBuilder::new().add("x-data", serde_json::to_value(&data).unwrap_or_default());
    ObjectBuilder::new()
        .description(Some(
            "One event; `x-data` is the schema of its data, which is JSON on one line.",
        ))
        .property("event", text())
        .property("id", text())
        .property("data", text().content_media_type("application/json"))
        .required("data")
        .extensions(Some(extensions.build()))
        .into()
}

fn add_header(operation: &mut Operation, parameter: Parameter) {
    let parameters = operation.parameters.get_or_insert_default();
    let known = parameters
        .iter()
        .any(|known| matches!(known, RefOr::T(known) if known.name.eq_ignore_ascii_case(&parameter.name)));
    if !known {
        parameters.push(parameter.into());
    }
}

fn idempotency_key() -> Parameter {
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(
            "Names this request; a repeat with the same key and body has the first outcome, for seven days.",
        ))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(255)),
        ))
        .build()
}

fn if_match(is_needed: bool) -> Parameter {
    ParameterBuilder::new()
        .name("If-Match")
        .parameter_in(ParameterIn::Header)
        .required(if is_needed { Required::True } else { Required::False })
        .description(Some("The version (as in `ETag`) that the write is meant for, or `*`."))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

fn problem_response() -> utoipa::openapi::Response {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .build();
    ResponseBuilder::new()
        .description("What was wrong (RFC 9457): `code` is stable, `errors` names each fault by its place.")
        .content(problem::MEDIA_TYPE, content)
        .build()
}
