//! The client of a runner: every call of the runner protocol (see [`crate::lease`]).

use std::time::Duration;

use bytes::Bytes;
use client_kit::{Client, ClientError, segment};
use contracts::ArtifactRef;
use futures::{Stream, StreamExt};
use kernel::id::AttemptId;
use uuid::Uuid;

use crate::{
    ArtifactUploadQuery, FinishRequest, FinishResponse, LeasePullRequest, LeasePullResponse, LeaseRenewRequest,
    LeaseRenewResponse, OutputAcknowledged, OutputUploadRequest, RunnerArtifactQuery, RunnerRegistration,
    RunnerSession, SessionRequest, StartedRequest, StartedResponse,
};

/// How much longer than its wait a long poll may take before it counts as unanswered.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Bytes that come in pieces.
pub type ByteStream = futures::stream::BoxStream<'static, std::io::Result<Bytes>>;

/// Calls of `/v1/runner/...`. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RunnerClient {
    client: Client,
    /// Shared by all clones: one client is one life of a runner's process.
    instance: Uuid,
}

impl RunnerClient {
    /// Calls go through `client`: for [`RunnerClient::open_session`] with the enrolment token (or, to
    /// rotate, the runner's own), for everything else with the runner's token.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            instance: Uuid::now_v7(),
        }
    }

    /// Registers and opens a session, superseding the one of an earlier process; called again, it
    /// rotates the token and keeps the session. Safe to repeat.
    ///
    /// # Errors
    /// 401, 403, or 422 when the registration breaks a rule.
    pub async fn open_session(&self, registration: &RunnerRegistration) -> Result<RunnerSession, ClientError> {
        let request = SessionRequest {
            instance: self.instance,
            registration: registration.clone(),
        };
        let call = self.client.post("/v1/runner/sessions").body(&request);
        call.repeatable().json().await
    }

    /// Waits for leases. Not repeated here: what an unanswered call was granted comes with the next.
    ///
    /// # Errors
    /// 401 `session_superseded`, or not answered.
    pub async fn pull(&self, request: &LeasePullRequest) -> Result<LeasePullResponse, ClientError> {
        let within = Duration::from_secs(request.wait_seconds.into()) + ANSWER_TIME;
        let call = self.client.post("/v1/runner/leases/pull").body(request);
        call.within(within).json().await
    }

    /// Extends leases, then waits for something worth telling.
    ///
    /// # Errors
    /// 401 `session_superseded`, or not answered within `patience` beyond the wait.
    pub async fn renew(
        &self,
        request: &LeaseRenewRequest,
        patience: Duration,
    ) -> Result<LeaseRenewResponse, ClientError> {
        let within = Duration::from_secs(request.wait_seconds.into()) + patience;
        let call = self.client.post("/v1/runner/leases/renew").body(request);
        call.within(within).json().await
    }

    /// Tells of the start. Safe to repeat.
    ///
    /// # Errors
    /// 409 `stale_epoch`, 404.
    pub async fn started(&self, attempt: AttemptId, request: &StartedRequest) -> Result<StartedResponse, ClientError> {
        let path = format!("/v1/runner/attempts/{attempt}/started");
        self.client.post(&path).body(request).repeatable().json().await
    }

    /// Sends output. Safe to repeat: what is durable already is skipped.
    ///
    /// # Errors
    /// 409 `stale_epoch`, `output_gap` (member `expected_sequence`), `output_mismatch`; 404.
    pub async fn output(
        &self,
        attempt: AttemptId,
        request: &OutputUploadRequest,
    ) -> Result<OutputAcknowledged, ClientError> {
        let path = format!("/v1/runner/attempts/{attempt}/output");
        self.client.post(&path).body(request).repeatable().json().await
    }

    /// Uploads an artifact as a stream. To be repeated from the start by the caller.
    ///
    /// # Errors
    /// 409 `stale_epoch`, `artifact_conflict`; 422 `digest_mismatch`, `secret_artifacts_unavailable`; 413; 404.
    pub async fn upload_artifact(
        &self,
        attempt: AttemptId,
        name: &str,
        query: &ArtifactUploadQuery,
        body: ByteStream,
    ) -> Result<ArtifactRef, ClientError> {
        let path = format!("/v1/runner/attempts/{attempt}/artifacts/{}", segment(name));
        let call = self.client.put(&path).query(query);
        call.stream("application/octet-stream", reqwest::Body::wrap_stream(body))
            .json()
            .await
    }

    /// Reports the end. Safe to repeat.
    ///
    /// # Errors
    /// 409 `stale_epoch`, `output_incomplete` (member `expected_sequence`), `attempt_finished`; 404.
    pub async fn finish(&self, attempt: AttemptId, request: &FinishRequest) -> Result<FinishResponse, ClientError> {
        let path = format!("/v1/runner/attempts/{attempt}/finish");
        self.client.post(&path).body(request).repeatable().json().await
    }

    /// The content bundle of an attempt. The caller verifies the digest.
    ///
    /// # Errors
    /// 404 when the attempt has none or is not this runner's.
    pub async fn content(
        &self,
        attempt: AttemptId,
        epoch: u64,
    ) -> Result<impl Stream<Item = std::io::Result<Bytes>> + Send + use<>, ClientError> {
        let path = format!("/v1/runner/attempts/{attempt}/content");
        self.bytes(&path, epoch).await
    }

    /// The bytes of an input artifact, by its name within the operation.
    ///
    /// # Errors
    /// 404 when the JobSpec does not name it or the attempt is not this runner's.
    pub async fn input_artifact(
        &self,
        attempt: AttemptId,
        epoch: u64,
        name: &str,
    ) -> Result<impl Stream<Item = std::io::Result<Bytes>> + Send + use<>, ClientError> {
        let path = format!("/v1/runner/attempts/{attempt}/inputs/{}", segment(name));
        self.bytes(&path, epoch).await
    }

    async fn bytes(
        &self,
        path: &str,
        epoch: u64,
    ) -> Result<impl Stream<Item = std::io::Result<Bytes>> + Send + use<>, ClientError> {
        let call = self.client.get(path).query(&RunnerArtifactQuery { epoch });
        let response = call.within(Duration::MAX).send().await?;
        let pieces = response.bytes_stream();
        Ok(pieces.map(|piece| piece.map_err(|error| std::io::Error::other(error.without_url()))))
    }
}
