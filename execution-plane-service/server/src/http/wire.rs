//! Domain and stored values as wire types.

use bytes::Bytes;
use contracts::Isolation;
use execution_plane_api as api;
use execution_plane_domain::attempt::State;

use crate::store::attempts::{Summary, Whole};
use crate::store::granted::Granted;
use crate::store::lookups::PolicyVersion;
use crate::store::output_append::{Chunk, Stream};
use crate::store::policies::StoredPolicy;
use crate::store::runners::StoredRunner;

pub const fn state(state: State) -> api::AttemptState {
    match state {
        State::Queued => api::AttemptState::Queued,
        State::Leased => api::AttemptState::Leased,
        State::Starting => api::AttemptState::Starting,
        State::Running => api::AttemptState::Running,
        State::Cancelling => api::AttemptState::Cancelling,
        State::Succeeded => api::AttemptState::Succeeded,
        State::Failed => api::AttemptState::Failed,
        State::Cancelled => api::AttemptState::Cancelled,
        State::TimedOut => api::AttemptState::TimedOut,
        State::Lost => api::AttemptState::Lost,
    }
}

pub const fn domain_state(state: api::AttemptState) -> State {
    match state {
        api::AttemptState::Queued => State::Queued,
        api::AttemptState::Leased => State::Leased,
        api::AttemptState::Starting => State::Starting,
        api::AttemptState::Running => State::Running,
        api::AttemptState::Cancelling => State::Cancelling,
        api::AttemptState::Succeeded => State::Succeeded,
        api::AttemptState::Failed => State::Failed,
        api::AttemptState::Cancelled => State::Cancelled,
        api::AttemptState::TimedOut => State::TimedOut,
        api::AttemptState::Lost => State::Lost,
    }
}

pub fn summary(summary: Summary) -> api::AttemptSummary {
    api::AttemptSummary {
        attempt_id: summary.id,
        operation_id: summary.operation_id,
        plan_node_id: summary.plan_node_id,
        job_type: summary.job_type,
        environment: summary.environment,
        state: state(summary.attempt.state),
        version: summary.version,
        runner_id: summary.runner_id,
        queued_at: summary.queued_at,
        leased_at: summary.leased_at,
        started_at: summary.started_at,
        finished_at: summary.finished_at,
        cancel_requested_at: summary.cancel_requested_at,
        reason: summary.reason,
    }
}

pub fn attempt(whole: Whole, waiting_for: Option<String>) -> api::Attempt {
    let stands = whole.summary.attempt;
    api::Attempt {
        epoch: stands.epoch,
        deadline_at: whole.deadline_at,
        isolation_used: whole.isolation_used,
        job_started: whole.result.as_ref().and_then(|result| result.job_started),
        waiting_for,
        output: api::OutputProgress {
            last_sequence: whole.last_sequence,
            bytes: whole.output_bytes,
            complete: stands.state.is_terminal(),
        },
        summary: summary(whole.summary),
        spec: whole.spec,
        result: whole.result,
    }
}

/// A lease whose time runs from `granted.since`.
pub fn lease(granted: Granted, lease_seconds: f64) -> api::Lease {
    let content = granted.spec.content.as_ref().zip(granted.content_bytes);
    api::Lease {
        attempt_id: granted.attempt_id,
        epoch: granted.epoch,
        deadline_in_seconds: (lease_seconds - granted.since.elapsed().as_secs_f64()).max(0.0),
        cancel_requested: granted.cancel_requested,
        content: content.map(|(content, size_bytes)| api::LeasedContent {
            sha256: content.sha256,
            size_bytes,
        }),
        command_policy: granted.policy.map(leased_policy),
        job: granted.spec,
    }
}

fn leased_policy(policy: PolicyVersion) -> api::LeasedPolicy {
    api::LeasedPolicy {
        name: policy.name,
        version: policy.version,
        body: policy_body(policy.body),
    }
}

/// A stored body was checked when it came in.
fn policy_body(body: serde_json::Value) -> api::CommandPolicyBody {
    serde_json::from_value(body).unwrap_or_default()
}

pub fn policy(policy: StoredPolicy) -> api::CommandPolicy {
    api::CommandPolicy {
        name: policy.name,
        version: policy.version,
        body: policy_body(policy.body),
        created_at: policy.created_at,
    }
}

pub fn runner(runner: StoredRunner) -> api::Runner {
    let status = match (runner.silent, runner.offer.draining) {
        (true, _) => api::RunnerStatus::Offline,
        (false, true) => api::RunnerStatus::Draining,
        (false, false) => api::RunnerStatus::Online,
    };
    api::Runner {
        runner_id: runner.id,
        name: runner.name,
        pools: runner.pools,
        labels: runner.offer.labels,
        job_types: runner.offer.job_types.into_iter().collect(),
        isolation: runner.offer.isolation.into_iter().collect::<Vec<Isolation>>(),
        capacity: runner.capacity,
        environments: runner.offer.environments.into_iter().collect(),
        software_version: runner.software_version,
        status,
        in_use: runner.in_use,
        version: runner.version,
        last_seen_at: runner.last_seen_at,
        registered_at: runner.registered_at,
    }
}

pub fn chunk(chunk: Chunk) -> api::OutputChunk {
    api::OutputChunk {
        sequence: chunk.sequence,
        byte_offset: chunk.byte_offset,
        stream: match chunk.stream {
            Stream::Stdout => api::OutputStream::Stdout,
            Stream::Stderr => api::OutputStream::Stderr,
            Stream::System => api::OutputStream::System,
        },
        at: chunk.at,
        data: chunk.data,
    }
}

pub fn stored_chunk(chunk: api::OutputChunk) -> Chunk {
    let data: Bytes = chunk.data;
    Chunk {
        sequence: chunk.sequence,
        byte_offset: chunk.byte_offset,
        stream: match chunk.stream {
            api::OutputStream::Stdout => Stream::Stdout,
            api::OutputStream::Stderr => Stream::Stderr,
            api::OutputStream::System => Stream::System,
        },
        at: chunk.at,
        data,
    }
}
