//! The client of control-plane and of people.

use audit::{AuditPage, AuditQuery, ChainHead, ChainPage};
use std::time::Duration;

use bytes::Bytes;
use client_kit::{Client, ClientError, segment};
use contracts::JobSpec;
use futures::{Stream, StreamExt};
use kernel::Sha256Digest;
use kernel::id::{AttemptId, RunnerId};

use crate::{
    ArtifactList, ArtifactListQuery, Attempt, AttemptBatch, AttemptBatchOutcome, AttemptList, AttemptListQuery,
    CancelRequest, CommandPolicy, CommandPolicyBody, ContentStored, DrainRequest, FeedPage, FeedQuery, OutputEvent,
    ResultsPullRequest, ResultsPullResponse, Runner, RunnerList, RunnerListQuery,
};

/// How much longer than its wait a long poll may take before it counts as unanswered.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Calls of `/v1/...`, for one organization. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ExecutionPlane {
    client: Client,
}

impl ExecutionPlane {
    /// Calls go through `client`, with its tokens.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Submits attempts; each has an outcome of its own. Safe to repeat.
    ///
    /// # Errors
    /// The batch as a whole was not answered or refused.
    pub async fn submit(&self, attempts: Vec<JobSpec>) -> Result<AttemptBatchOutcome, ClientError> {
        let batch = AttemptBatch { attempts };
        self.client
            .post("/v1/attempt-batches")
            .body(&batch)
            .repeatable()
            .json()
            .await
    }

    /// Asks for an attempt's end. Safe to repeat.
    ///
    /// # Errors
    /// 404 when it was never submitted.
    pub async fn cancel(&self, attempt: AttemptId, request: CancelRequest) -> Result<Attempt, ClientError> {
        let path = format!("/v1/attempts/{attempt}/cancel");
        self.client.post(&path).body(&request).repeatable().json().await
    }

    /// One attempt.
    ///
    /// # Errors
    /// 404 when it was never submitted.
    pub async fn attempt(&self, attempt: AttemptId) -> Result<Attempt, ClientError> {
        self.client.get(&format!("/v1/attempts/{attempt}")).json().await
    }

    /// A page of attempts, the newest first.
    ///
    /// # Errors
    /// Not answered, or refused.
    pub async fn attempts(&self, query: &AttemptListQuery) -> Result<AttemptList, ClientError> {
        self.client.get("/v1/attempts").query(query).json().await
    }

    /// Acknowledges results and pulls the next ones. Safe to repeat.
    ///
    /// # Errors
    /// Not answered, or refused.
    pub async fn pull_results(&self, request: &ResultsPullRequest) -> Result<ResultsPullResponse, ClientError> {
        let within = Duration::from_secs(request.wait_seconds.into()) + ANSWER_TIME;
        let call = self.client.post("/v1/results/pull").body(request);
        call.within(within).json().await
    }

    /// The output of an attempt as it comes, after `after`, ending with [`OutputEvent::End`]. Broken
    /// connections are resumed.
    pub fn tail(&self, attempt: AttemptId, after: u64) -> impl Stream<Item = Result<OutputEvent, ClientError>> + Send {
        let client = self.client.clone();
        let path = format!("/v1/attempts/{attempt}/output");
        async_stream::try_stream! {
            let resume = (after > 0).then(|| after.to_string());
            let events = client.events(&path, resume, "end");
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                let event = event?;
                match event.event.as_str() {
                    "chunk" => yield OutputEvent::Chunk(event.json()?),
                    "final" => yield OutputEvent::End(event.json()?),
                    _ => {}
                }
            }
        }
    }

    /// The raw output of an attempt so far.
    ///
    /// # Errors
    /// 404 when it was never submitted.
    pub async fn whole_output(&self, attempt: AttemptId) -> Result<Bytes, ClientError> {
        self.client.get(&format!("/v1/attempts/{attempt}/output")).whole().await
    }

    /// A page of the artifacts of an attempt, by name.
    ///
    /// # Errors
    /// 404 when it was never submitted.
    pub async fn artifacts(&self, attempt: AttemptId, query: &ArtifactListQuery) -> Result<ArtifactList, ClientError> {
        self.client
            .get(&format!("/v1/attempts/{attempt}/artifacts"))
            .query(query)
            .json()
            .await
    }

    /// The bytes of one artifact.
    ///
    /// # Errors
    /// 404 when there is none of that name.
    pub async fn artifact(&self, attempt: AttemptId, name: &str) -> Result<Bytes, ClientError> {
        let path = format!("/v1/attempts/{attempt}/artifacts/{}", segment(name));
        self.client.get(&path).whole().await
    }

    /// Stores a content bundle. Safe to repeat.
    ///
    /// # Errors
    /// 422 `digest_mismatch`, 413 when it is too large.
    pub async fn put_content(&self, sha256: Sha256Digest, bundle: Bytes) -> Result<ContentStored, ClientError> {
        let path = format!("/v1/contents/{sha256}");
        self.client
            .put(&path)
            .bytes("application/octet-stream", bundle)
            .json()
            .await
    }

    /// The newest version of a command policy.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn command_policy(&self, name: &str) -> Result<CommandPolicy, ClientError> {
        self.client.get(&policy_path(name)).json().await
    }

    /// Makes the next version of a command policy (the first one with `expected` `None`).
    ///
    /// # Errors
    /// 412 when the version moved, 422 when the rules are wrong.
    pub async fn put_command_policy(
        &self,
        name: &str,
        expected: Option<u64>,
        body: &CommandPolicyBody,
    ) -> Result<CommandPolicy, ClientError> {
        let call = self.client.put(&policy_path(name)).body(body);
        at_version(call, expected).json().await
    }

    /// A page of runners.
    ///
    /// # Errors
    /// Not answered, or refused.
    pub async fn runners(&self, query: &RunnerListQuery) -> Result<RunnerList, ClientError> {
        self.client.get("/v1/runners").query(query).json().await
    }

    /// Stops or resumes giving a runner work.
    ///
    /// # Errors
    /// 412 when the version moved.
    pub async fn drain(&self, runner: RunnerId, version: u64, draining: bool) -> Result<Runner, ClientError> {
        let path = format!("/v1/runners/{runner}/drain");
        let call = self.client.put(&path).body(&DrainRequest { draining });
        at_version(call, Some(version)).json().await
    }

    /// One page of the audit: every command, allowed or refused, oldest first.
    pub async fn audit_facts(&self, query: &AuditQuery) -> Result<AuditPage, ClientError> {
        self.client.get("/v1/audit").query(query).json().await
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

    /// A page of the event feed.
    ///
    /// # Errors
    /// Not answered, or refused.
    pub async fn feed(&self, query: &FeedQuery) -> Result<FeedPage, ClientError> {
        let within = Duration::from_secs(query.wait_seconds.unwrap_or(0).into()) + ANSWER_TIME;
        self.client.get("/v1/feed").query(query).within(within).json().await
    }
}

fn policy_path(name: &str) -> String {
    format!("/v1/command-policies/{}", segment(name))
}

fn at_version(call: client_kit::Call, version: Option<u64>) -> client_kit::Call {
    match version.and_then(|version| i64::try_from(version).ok()) {
        Some(version) => call.if_version(version),
        None => call,
    }
}
