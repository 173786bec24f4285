//! A client of control-plane-service.

use bytes::Bytes;
use client_kit::{Answer, Client, ClientError};
use futures::{Stream, StreamExt as _};
use kernel::id::{OperationId, PlanId};
use serde::Serialize;

use crate::{
    AuditPage, ChainHead, ChainPage, ClaimPage, CreateOperation, DecisionRequest, FeedPage, FeedQuery, GateList,
    GateView, InterventionOutcome, InterventionRequest, ListEventsQuery, ListNodeRunsQuery, ListOperationsQuery,
    NodeRunPage, Operation, OperationEvent, OperationEventPage, OperationPage, PackPage, PackValidation, PackView,
    PageQuery, PlanRequest, PlanView, ProjectionPage, ProjectionView, RebuildRequest, RuntimeView,
};

/// The media type of a pack archive.
pub const PACK_MEDIA_TYPE: &str = "application/x-tar";

/// Calls control-plane. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    client: Client,
}

#[derive(Serialize)]
struct PreviewQuery<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_for: Option<&'a str>,
}

/// Every method fails with [`ClientError`]: no answer, or a refusal.
#[allow(clippy::missing_errors_doc)]
impl ControlPlane {
    /// Speaks through `client`.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Publishes a pack archive. The same archive again is the same version.
    pub async fn push_pack(&self, archive: Bytes, idempotency_key: &str) -> Result<Answer<PackView>, ClientError> {
        let call = self.client.post("/v1/packs").bytes(PACK_MEDIA_TYPE, archive);
        call.idempotency_key(idempotency_key).answer().await
    }

    /// Finds every fault of a pack archive; nothing is kept.
    pub async fn validate_pack(&self, archive: Bytes) -> Result<PackValidation, ClientError> {
        self.client
            .post("/v1/packs/validate")
            .bytes(PACK_MEDIA_TYPE, archive)
            .repeatable()
            .json()
            .await
    }

    /// One page of packs.
    pub async fn packs(&self, query: &PageQuery) -> Result<PackPage, ClientError> {
        self.client.get("/v1/packs").query(query).json().await
    }

    /// Plans without starting anything. With `wait_for` (`RESOURCE@VERSION`) the projection is waited for first.
    pub async fn preview(&self, request: &PlanRequest, wait_for: Option<&str>) -> Result<PlanView, ClientError> {
        let call = self
            .client
            .post("/v1/plans")
            .query(&PreviewQuery { wait_for })
            .body(request);
        call.idempotency_key(&uuid::Uuid::now_v7().to_string()).json().await
    }

    /// A stored plan.
    pub async fn plan(&self, id: PlanId) -> Result<PlanView, ClientError> {
        self.client.get(&format!("/v1/plans/{id}")).json().await
    }

    /// Starts an operation. `idempotency_key` makes a repeat give the first one.
    pub async fn create_operation(
        &self,
        create: &CreateOperation,
        idempotency_key: &str,
    ) -> Result<Operation, ClientError> {
        self.client
            .post("/v1/operations")
            .body(create)
            .idempotency_key(idempotency_key)
            .json()
            .await
    }

    /// One page of operations, newest first.
    pub async fn operations(&self, query: &ListOperationsQuery) -> Result<OperationPage, ClientError> {
        self.client.get("/v1/operations").query(query).json().await
    }

    /// An operation.
    pub async fn operation(&self, id: OperationId) -> Result<Operation, ClientError> {
        self.client.get(&format!("/v1/operations/{id}")).json().await
    }

    /// One page of an operation's node runs, in plan order.
    pub async fn node_runs(&self, id: OperationId, query: &ListNodeRunsQuery) -> Result<NodeRunPage, ClientError> {
        self.client
            .get(&format!("/v1/operations/{id}/node-runs"))
            .query(query)
            .json()
            .await
    }

    /// One page of an operation's events, oldest first.
    pub async fn events(&self, id: OperationId, query: &ListEventsQuery) -> Result<OperationEventPage, ClientError> {
        self.client
            .get(&format!("/v1/operations/{id}/events"))
            .query(query)
            .json()
            .await
    }

    /// An operation's events after sequence `after`, live, until its run is over. Broken connections are resumed.
    pub fn watch(
        &self,
        id: OperationId,
        after: i64,
    ) -> impl Stream<Item = Result<OperationEvent, ClientError>> + Send + use<> {
        let client = self.client.clone();
        async_stream::try_stream! {
            let path = format!("/v1/operations/{id}/watch");
            let mut events = std::pin::pin!(client.events(&path, Some(after.to_string()), "end"));
            while let Some(event) = events.next().await {
                let event = event?;
                if event.event != "end" {
                    yield event.json::<OperationEvent>()?;
                }
            }
        }
    }

    /// One page of an operation's gates, with what each covers, in plan order.
    pub async fn gates(&self, id: OperationId, query: &PageQuery) -> Result<GateList, ClientError> {
        self.client
            .get(&format!("/v1/operations/{id}/gates"))
            .query(query)
            .json()
            .await
    }

    /// Decides a gate.
    pub async fn decide(
        &self,
        id: OperationId,
        gate: uuid::Uuid,
        decision: &DecisionRequest,
    ) -> Result<GateView, ClientError> {
        let path = format!("/v1/operations/{id}/gates/{}/decisions", gate);
        let key = uuid::Uuid::now_v7().to_string();
        self.client
            .post(&path)
            .body(decision)
            .idempotency_key(&key)
            .json()
            .await
    }

    /// Changes the course of an operation.
    pub async fn intervene(
        &self,
        id: OperationId,
        request: &InterventionRequest,
    ) -> Result<InterventionOutcome, ClientError> {
        let path = format!("/v1/operations/{id}/interventions");
        let key = uuid::Uuid::now_v7().to_string();
        self.client.post(&path).body(request).idempotency_key(&key).json().await
    }

    /// One page of claims: who holds what, who waits.
    pub async fn claims(&self, query: &PageQuery) -> Result<ClaimPage, ClientError> {
        self.client.get("/v1/claims").query(query).json().await
    }

    /// One page of the audit: every command, allowed or refused.
    pub async fn audit_facts(&self, query: &PageQuery) -> Result<AuditPage, ClientError> {
        self.client.get("/v1/audit").query(query).json().await
    }

    /// What drives the operations, and how it fares.
    pub async fn runtime(&self) -> Result<RuntimeView, ClientError> {
        self.client.get("/v1/runtime").json().await
    }

    /// The signed proof of an operation.
    ///
    /// The bytes are its one form: verify and keep them as they come.
    pub async fn proof(&self, id: OperationId) -> Result<Bytes, ClientError> {
        self.client.get(&format!("/v1/operations/{id}/proof")).whole().await
    }

    /// One page of the local copies of the catalog: how far each is.
    pub async fn projections(&self, query: &PageQuery) -> Result<ProjectionPage, ClientError> {
        self.client.get("/v1/projections").query(query).json().await
    }

    /// Has a local copy made anew from a snapshot; answers at once.
    pub async fn rebuild_projection(
        &self,
        name: &str,
        request: &RebuildRequest,
    ) -> Result<ProjectionView, ClientError> {
        let path = format!("/v1/projections/{}/rebuild", client_kit::segment(name));
        let key = uuid::Uuid::now_v7().to_string();
        self.client.post(&path).body(request).idempotency_key(&key).json().await
    }

    /// The chain over the audit after the sequence `after`, at most `limit` links.
    pub async fn audit_chain(&self, after: i64, limit: u32) -> Result<ChainPage, ClientError> {
        let query = [("after", after), ("limit", i64::from(limit))];
        self.client.get("/v1/audit/chain").query(&query).json().await
    }

    /// Where that chain ends, and how many facts there are.
    pub async fn audit_head(&self) -> Result<ChainHead, ClientError> {
        self.client.get("/v1/audit/head").json().await
    }

    /// Facts after a revision.
    pub async fn feed(&self, query: &FeedQuery) -> Result<FeedPage, ClientError> {
        self.client.get("/v1/feed").query(query).json().await
    }
}
