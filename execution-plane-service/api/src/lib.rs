//! The wire of execution-plane-service: every body it takes and gives, and a client for it.
//!
//! Two audiences, two sets of endpoints. control-plane and people use `/v1/...`: submit attempts,
//! cancel, read output, pull results. Runners use `/v1/runner/...`: they reach out, nothing ever
//! calls in. The protocol of a runner, in order, is written down in [`lease`].
//!
//! Invariants: these types know no database and no domain type (wire types are converted at the
//! edge); every write of a runner carries the `epoch` of its lease; readers ignore fields they do
//! not know.

pub mod artifact;
pub mod attempt;
mod base64_bytes;
pub mod client;
pub mod command_policy;
pub mod content;
pub mod feed;
pub mod finish;
pub mod lease;
pub mod output;
pub mod problem_codes;
pub mod results;
pub mod runner;
pub mod runner_client;
pub mod running;

pub use artifact::{ArtifactList, ArtifactListQuery, ArtifactUploadQuery, RunnerArtifactQuery};
pub use attempt::{
    Attempt, AttemptBatch, AttemptBatchOutcome, AttemptList, AttemptListQuery, AttemptOutcome, AttemptState,
    AttemptSummary, CancelRequest, OutputProgress, SubmissionOutcome,
};
pub use audit::{AuditFact, AuditPage, AuditQuery, ChainHead, ChainPage};
pub use client::ExecutionPlane;
pub use command_policy::{ArgvPattern, CommandPolicy, CommandPolicyBody};
pub use content::ContentStored;
pub use feed::{FeedEvent, FeedPage, FeedQuery};
pub use finish::{FinishRequest, FinishResponse, StartPhase, StartedRequest, StartedResponse};
pub use lease::{
    HeldAttempt, Lease, LeasePullRequest, LeasePullResponse, LeaseRenewRequest, LeaseRenewResponse, LeasedContent,
    LeasedPolicy, RenewOutcome, RenewedLease,
};
pub use output::{
    OutputAcknowledged, OutputChunk, OutputEnd, OutputEvent, OutputQuery, OutputStream, OutputUploadRequest,
};
pub use results::{ResultsPullRequest, ResultsPullResponse};
pub use runner::{
    DrainRequest, Runner, RunnerList, RunnerListQuery, RunnerRegistration, RunnerSession, RunnerStatus, SessionRequest,
};
pub use runner_client::RunnerClient;
pub use running::{Running, RunningAttempt, RunningQuery};
