use audit::{AuditPage, AuditQuery, ChainHead, ChainPage};
use std::sync::Arc;
use std::time::Duration;

use client_kit::{Answer, Call, ClientError, segment};
use contracts::{CatalogProjectionEvent, ResourceUpdateCommand};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use identity::TokenSource;
use kernel::id::{OperationId, OrganizationId};
use kernel::{DottedName, ResourceId};

use crate::{
    ApplyCapabilityDefinition, ApplyResource, ApplyResourceType, CapabilityDefinition, CapabilityDefinitionPage,
    CreateResource, Edge, EdgePage, FeedPage, FeedQuery, ListDefinitionsQuery, ListEdgesQuery, ListResourcesQuery,
    ObserveCapability, Resource, ResourcePage, ResourceType, ResourceTypePage, SnapshotLine, UpdateOutcome,
    ValidationRequest, ValidationResponse, WatchQuery,
};

/// A client of resource-catalog-service. Cheap to clone. Every method fails as [`client_kit::Call::send`] does;
/// an answered refusal is [`ClientError::Problem`].
#[derive(Debug, Clone)]
pub struct Client(client_kit::Client);

impl From<client_kit::Client> for Client {
    fn from(client: client_kit::Client) -> Self {
        Self(client)
    }
}

fn path_of(resource_id: &ResourceId) -> String {
    format!(
        "/v1/resources/{}/{}",
        segment(resource_id.prefix()),
        segment(resource_id.name())
    )
}

fn edge_path(source: &ResourceId, edge: &Edge) -> String {
    let target = &edge.target;
    format!(
        "{}/edges/{}/{}/{}",
        path_of(source),
        edge.edge_type.as_str(),
        segment(target.prefix()),
        segment(target.name())
    )
}

fn guarded(call: Call, version: Option<i64>) -> Call {
    match version {
        Some(version) => call.if_version(version),
        None => call,
    }
}

impl Client {
    /// A client of the catalog at `base`, like `http://127.0.0.1:7301`.
    ///
    /// # Errors
    /// [`ClientError::Address`].
    pub fn new(base: &str, tokens: Option<Arc<dyn TokenSource>>) -> Result<Self, ClientError> {
        client_kit::Client::new(base, tokens).map(Self)
    }

    /// The same client acting for `organization`.
    #[must_use]
    pub fn acting_for(&self, organization: OrganizationId) -> Self {
        Self(self.0.acting_for(organization))
    }

    /// One page of resource types.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn resource_types(&self, query: &ListDefinitionsQuery) -> Result<ResourceTypePage, ClientError> {
        self.0.get("/v1/resource-types").query(query).json().await
    }

    /// A resource type.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn resource_type(&self, name: &DottedName) -> Result<ResourceType, ClientError> {
        self.0.get(&format!("/v1/resource-types/{name}")).json().await
    }

    /// Registers a resource type, or changes it; at `version` only, where one is given. Status 201 when it is new.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn apply_resource_type(
        &self,
        name: &DottedName,
        definition: &ApplyResourceType,
        version: Option<i64>,
    ) -> Result<Answer<ResourceType>, ClientError> {
        let call = self.0.put(&format!("/v1/resource-types/{name}")).body(definition);
        guarded(call, version).answer().await
    }

    /// One page of capability definitions.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn capability_definitions(
        &self,
        query: &ListDefinitionsQuery,
    ) -> Result<CapabilityDefinitionPage, ClientError> {
        self.0.get("/v1/capability-definitions").query(query).json().await
    }

    /// A capability definition.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn capability_definition(&self, name: &DottedName) -> Result<CapabilityDefinition, ClientError> {
        self.0.get(&format!("/v1/capability-definitions/{name}")).json().await
    }

    /// Registers a capability definition, or changes it; at `version` only, where one is given.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn apply_capability_definition(
        &self,
        name: &DottedName,
        definition: &ApplyCapabilityDefinition,
        version: Option<i64>,
    ) -> Result<Answer<CapabilityDefinition>, ClientError> {
        let call = self
            .0
            .put(&format!("/v1/capability-definitions/{name}"))
            .body(definition);
        guarded(call, version).answer().await
    }

    /// One page of resources.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn resources(&self, query: &ListResourcesQuery) -> Result<ResourcePage, ClientError> {
        self.0.get("/v1/resources").query(query).json().await
    }

    /// A resource.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn resource(&self, resource_id: &ResourceId) -> Result<Resource, ClientError> {
        self.0.get(&path_of(resource_id)).json().await
    }

    /// Creates a resource under an id that nothing has yet. `idempotency_key` makes a repeat give the first outcome.
    ///
    /// # Errors
    /// No answer, or a refusal: `resource_exists`.
    pub async fn create_resource(
        &self,
        resource: &CreateResource,
        idempotency_key: &str,
    ) -> Result<Answer<Resource>, ClientError> {
        let call = self.0.post("/v1/resources").body(resource);
        call.idempotency_key(idempotency_key).answer().await
    }

    /// Makes a resource what it is asked to be, creating it where it is missing; at `version` only, where one is given.
    /// Status 201 when it is new. Applying what is so makes no new version.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn apply_resource(
        &self,
        resource_id: &ResourceId,
        resource: &ApplyResource,
        version: Option<i64>,
    ) -> Result<Answer<Resource>, ClientError> {
        guarded(self.0.put(&path_of(resource_id)).body(resource), version)
            .answer()
            .await
    }

    /// One page of the edges that leave a resource.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn edges(&self, resource_id: &ResourceId, query: &ListEdgesQuery) -> Result<EdgePage, ClientError> {
        let call = self.0.get(&format!("{}/edges", path_of(resource_id)));
        call.query(query).json().await
    }

    /// Adds an edge; nothing changes when it is there.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn add_edge(&self, source: &ResourceId, edge: &Edge) -> Result<Resource, ClientError> {
        self.0.put(&edge_path(source, edge)).json().await
    }

    /// Removes an edge; nothing changes when it is not there.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn remove_edge(&self, source: &ResourceId, edge: &Edge) -> Result<Resource, ClientError> {
        self.0.delete(&edge_path(source, edge)).json().await
    }

    /// Says that a resource was seen to provide a capability.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn observe_capability(
        &self,
        resource_id: &ResourceId,
        capability: &DottedName,
        seen: &ObserveCapability,
    ) -> Result<Resource, ClientError> {
        let path = format!("{}/capabilities/{capability}", path_of(resource_id));
        self.0.put(&path).body(seen).json().await
    }

    /// Says that a resource was seen not to provide a capability any more.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn withdraw_capability(
        &self,
        resource_id: &ResourceId,
        capability: &DottedName,
    ) -> Result<Resource, ClientError> {
        let path = format!("{}/capabilities/{capability}", path_of(resource_id));
        self.0.delete(&path).json().await
    }

    /// Sends a resource update command. Applied, replayed, conflict and rejected are all outcomes; an error is a
    /// call without one (or another body under a known command id).
    ///
    /// # Errors
    /// No answer, or a refusal that is no outcome: `command_id_reused`.
    pub async fn update_resource(&self, command: &ResourceUpdateCommand) -> Result<UpdateOutcome, ClientError> {
        let call = self.0.post("/v1/resource-updates").body(command).repeatable();
        match call.json().await {
            Err(ClientError::Problem(problem)) => match problem.extensions.get("update") {
                Some(outcome) => serde_json::from_value(outcome.clone()).map_err(|source| ClientError::Answer {
                    url: "/v1/resource-updates".into(),
                    source: source.into(),
                }),
                None => Err(ClientError::Problem(problem)),
            },
            other => other,
        }
    }

    /// Asks whether many resources are still as expected, setting finalizers where asked. Repeating it asks again.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn validate(&self, request: &ValidationRequest) -> Result<ValidationResponse, ClientError> {
        self.0.post("/v1/validations").body(request).repeatable().json().await
    }

    /// Lets go of every finalizer of an operation. One that holds none (any more) is as good.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn release_finalizers(&self, operation_id: OperationId) -> Result<(), ClientError> {
        match self.0.delete(&format!("/v1/finalizers/{operation_id}")).done().await {
            Err(error) if error.status() == Some(404) => Ok(()),
            other => other,
        }
    }

    /// One page of the audit: every command, allowed or refused, oldest first.
    pub async fn audit_facts(&self, query: &AuditQuery) -> Result<AuditPage, ClientError> {
        self.0.get("/v1/audit").query(query).json().await
    }

    /// The chain over the audit after the sequence `after`, at most `limit` links.
    pub async fn audit_chain(&self, after: i64, limit: u32) -> Result<ChainPage, ClientError> {
        let query = [("after", after), ("limit", i64::from(limit))];
        self.0.get("/v1/audit/chain").query(&query).json().await
    }

    /// Where that chain ends, and how many facts there are.
    pub async fn audit_head(&self) -> Result<ChainHead, ClientError> {
        self.0.get("/v1/audit/head").json().await
    }

    /// Events after a revision, waiting for some as long as asked.
    ///
    /// # Errors
    /// No answer, or a refusal: `revision_gone` when the feed no longer reaches back so far.
    pub async fn feed(&self, query: &FeedQuery) -> Result<FeedPage, ClientError> {
        let patience = Duration::from_secs(15 + u64::from(query.wait_seconds.unwrap_or(0)));
        self.0.get("/v1/feed").query(query).within(patience).json().await
    }

    /// Every resource, as one stream that is whole only when [`SnapshotLine::End`] comes.
    ///
    /// # Errors
    /// No answer, or a refusal; later a line that cannot be read or a broken stream.
    pub async fn snapshot(
        &self,
    ) -> Result<impl Stream<Item = Result<SnapshotLine, ClientError>> + Send + use<>, ClientError> {
        let response = self.0.get("/v1/snapshot").within(Duration::MAX).send().await?;
        let url = "/v1/snapshot".to_owned();
        let chunks = response.bytes_stream().map_err(move |source| ClientError::Unreachable {
            url: url.clone(),
            source: source.without_url(),
        });
        Ok(lines(chunks.boxed()))
    }

    /// Changes of selected resources, after `last_event_id` (a revision) where one is given. The stream outlives broken
    /// connections; it ends with a refusal, such as `revision_gone`.
    pub fn watch(
        &self,
        query: &WatchQuery,
        last_event_id: Option<String>,
    ) -> impl Stream<Item = Result<CatalogProjectionEvent, ClientError>> + Send + use<> {
        let client = self.0.clone();
        let path = watch_path(query);
        async_stream::stream! {
            let events = client.events(&path, last_event_id, "");
            futures::pin_mut!(events);
            while let Some(event) = events.next().await {
                yield event.and_then(|event| event.json());
            }
        }
    }
}

fn watch_path(query: &WatchQuery) -> String {
    let fields = match serde_json::to_value(query) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let pairs: Vec<String> = fields
        .iter()
        .map(|(key, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{key}={}", segment(&text))
        })
        .collect();
    format!("/v1/watch/resources?{}", pairs.join("&"))
}

/// Cuts chunks into lines and reads each.
fn lines<B: AsRef<[u8]> + Send>(
    mut chunks: impl Stream<Item = Result<B, ClientError>> + Unpin + Send,
) -> impl Stream<Item = Result<SnapshotLine, ClientError>> + Send {
    let read = |line: &[u8]| {
        serde_json::from_slice(line).map_err(|source| ClientError::Answer {
            url: "/v1/snapshot".into(),
            source: source.into(),
        })
    };
    async_stream::try_stream! {
        let mut kept = Vec::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            let mut rest = chunk.as_ref();
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                kept.extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
                if !kept.is_empty() {
                    yield read(&kept)?;
                    kept.clear();
                }
            }
            kept.extend_from_slice(rest);
        }
        if !kept.is_empty() {
            yield read(&kept)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    #[test]
    fn a_watch_escapes_what_it_selects_by() {
        let query = WatchQuery {
            after: Some(7),
            selector: Some("zone in (a,b)".into()),
            ..WatchQuery::default()
        };
        assert_eq!(
            watch_path(&query),
            "/v1/watch/resources?after=7&selector=zone%20in%20%28a%2Cb%29"
        );
    }

    #[tokio::test]
    async fn lines_are_whole_wherever_the_stream_is_cut() {
        let text = "{\"kind\":\"end\",\"resources\":1}\n{\"kind\":\"end\",\"resources\":2}\n";
        for cut in 1..text.len() {
            let (a, b) = text.as_bytes().split_at(cut);
            let found: Vec<_> = lines(stream::iter([Ok(a), Ok(b)])).try_collect().await.unwrap();
            assert_eq!(
                found,
                [SnapshotLine::End { resources: 1 }, SnapshotLine::End { resources: 2 }],
                "{cut}"
            );
        }
    }
}
