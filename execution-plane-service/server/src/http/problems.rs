//! What callers are told when something is refused or fails.

use api_kit::{FieldError, Problem, database_problem, internal_problem};
use execution_plane_api::problem_codes as codes;
use execution_plane_domain::submission::Refusal;
use execution_plane_domain::{Fault, FaultCode};
use execution_plane_ports::BlobError;
use kernel::id::AttemptId;

use crate::store::StoreError;
use crate::store::output_append::Refused;
use crate::store::report::Fenced;

/// The store failed.
pub fn store(error: StoreError) -> Problem {
    match error {
        StoreError::Database(error) => database_problem(&error),
        StoreError::Raced => Problem::unavailable("The same attempt is being submitted elsewhere."),
        corrupt @ StoreError::Corrupt { .. } => internal_problem(&corrupt),
    }
}

/// No such attempt, for this caller.
pub fn no_attempt(id: AttemptId) -> Problem {
    Problem::not_found(format_args!("attempt {id}"))
}

/// A runner's report is not taken.
pub fn fenced(fenced: Fenced, id: AttemptId) -> Problem {
    match fenced {
        Fenced::NotYours => no_attempt(id),
        Fenced::Stale { current } => Problem::conflict(codes::STALE_EPOCH, "The lease has passed on or was lost.")
            .remedy("End the job and report nothing more about this attempt.")
            .with("current_epoch", current),
        Fenced::Ended => Problem::conflict(codes::ATTEMPT_FINISHED, "The attempt has ended.")
            .remedy("Report nothing more about it; its first end stands."),
    }
}

/// Chunks are not taken.
pub fn output(refused: Refused, id: AttemptId) -> Problem {
    match refused {
        Refused::Fenced(reason) => fenced(reason, id),
        Refused::Gap { expected_sequence } => {
            Problem::conflict(codes::OUTPUT_GAP, format!("Chunk {expected_sequence} is missing."))
                .remedy("Send again from that chunk on.")
                .with("expected_sequence", expected_sequence)
        }
        Refused::Mismatch {
            sequence,
            expected_offset,
        } => Problem::conflict(
            codes::OUTPUT_MISMATCH,
            format!("Chunk {sequence} must begin at byte {expected_offset}."),
        )
        .with("expected_offset", expected_offset),
        Refused::TooLarge { limit } => Problem::new(413, "output_too_large", "The output is too large")
            .detail(format!("An attempt may have at most {limit} bytes of output."))
            .remedy("Say in the output that the rest is left out, and go on with the job.")
            .with("limit", limit),
    }
}

/// Each fault by its place.
pub fn field_errors(faults: Vec<Fault>) -> Vec<FieldError> {
    let error = |fault: Fault| FieldError::new(fault.pointer, fault.code.as_str(), fault.detail);
    faults.into_iter().map(error).collect()
}

/// A submission is refused.
pub fn refusal(refusal: Refusal) -> Problem {
    let title = "The attempt is refused";
    let refuse = |code: &str| Problem::new(422, code, title).detail(format!("{}.", capitalized(&refusal)));
    let missing = |pointer: &str, detail: &str| FieldError::new(pointer, FaultCode::Missing.as_str(), detail);
    match &refusal {
        Refusal::Invalid(faults) => refuse(codes::INVALID_JOB_SPEC).errors(field_errors(faults.clone())),
        Refusal::JobTypeNotAvailable(_) => refuse(codes::JOB_TYPE_NOT_AVAILABLE)
            .error(missing("/job_type", "this job type is not run by this version"))
            .remedy("Use ansible, ssh or verification."),
        Refusal::ContentMissing(_) => refuse(codes::CONTENT_MISSING)
            .error(missing("/content/sha256", "no such content"))
            .remedy("Upload the bundle with PUT /v1/contents/{sha256} first."),
        Refusal::ArtifactMissing(_) => refuse(codes::ARTIFACT_MISSING)
            .error(missing(
                "/inputs/artifacts",
                "no artifact of that name in the operation",
            ))
            .remedy("Let the node that makes it run before."),
        Refusal::UnknownPolicy(_) => refuse(codes::UNKNOWN_COMMAND_POLICY)
            .error(missing("/controls/allowed_commands_ref", "no such policy"))
            .remedy("Store the policy with PUT /v1/command-policies/{name} first."),
        Refusal::CommandNotAllowed { faults, .. } => refuse(codes::COMMAND_NOT_ALLOWED)
            .errors(field_errors(faults.clone()))
            .remedy("Change the command, or have the policy allow it."),
        Refusal::UnknownRunner(_) => refuse(codes::UNKNOWN_RUNNER)
            .error(missing("/runner/name", "no registered runner has this name or pool"))
            .remedy("Register such a runner, or ask for another."),
    }
}

fn capitalized(error: &impl core::fmt::Display) -> String {
    let text = error.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// Bytes could not be stored or read.
pub fn blob(error: BlobError) -> Problem {
    match error {
        BlobError::Missing(key) => Problem::not_found(format_args!("content {}", key.sha256)),
        BlobError::DigestMismatch { expected, actual } => {
            Problem::new(422, codes::DIGEST_MISMATCH, "The bytes have another digest")
                .detail(format!("The bytes have the SHA-256 {actual}, not {expected}."))
                .remedy("Send the bytes again, or name the digest that they have.")
        }
        BlobError::TooLarge { limit } => Problem::new(413, "body_too_large", "The request body is too large")
            .detail(format!("At most {limit} bytes are accepted here."))
            .with("limit", limit),
        BlobError::Body(source) if is_length_limit(&source) => {
            Problem::new(413, "body_too_large", "The request body is too large")
        }
        BlobError::Body(_) => Problem::new(400, "body_incomplete", "The request body ended early"),
        store @ BlobError::Store(_) => {
            let _ = internal_problem(&store);
            Problem::unavailable("The blob store is not available at the moment.")
        }
    }
}

fn is_length_limit(error: &(dyn core::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        next = cause.source();
    }
    false
}
