//! The stable `code`s of this service's problems, beside those of the shared HTTP layers.

/// 422: the JobSpec breaks a rule; `errors` names each place.
pub const INVALID_JOB_SPEC: &str = "invalid_job_spec";
/// 422: kubernetes, helm and opentofu jobs are not run by this version.
pub const JOB_TYPE_NOT_AVAILABLE: &str = "job_type_not_available";
/// 422: the bundle that the JobSpec pins was not uploaded by this organization.
pub const CONTENT_MISSING: &str = "content_missing";
/// 422: no artifact of that name exists in the operation.
pub const ARTIFACT_MISSING: &str = "artifact_missing";
/// 422: `allowed_commands_ref` names no policy of this organization.
pub const UNKNOWN_COMMAND_POLICY: &str = "unknown_command_policy";
/// 422: a command of the job is not allowed by its policy. Nothing ran.
pub const COMMAND_NOT_ALLOWED: &str = "command_not_allowed";
/// 422: no registered runner of the organization goes by that name.
pub const UNKNOWN_RUNNER: &str = "unknown_runner";
/// 409: another body was accepted under this attempt id.
pub const ATTEMPT_CONFLICT: &str = "attempt_conflict";
/// 409: the lease was superseded or has ended; nothing was written.
pub const STALE_EPOCH: &str = "stale_epoch";
/// 409: a chunk is missing before the first one sent; `expected_sequence` says which.
pub const OUTPUT_GAP: &str = "output_gap";
/// 409: another chunk is durable under this sequence or offset.
pub const OUTPUT_MISMATCH: &str = "output_mismatch";
/// 409: finish came before all output was durable; `expected_sequence` says which is missing.
pub const OUTPUT_INCOMPLETE: &str = "output_incomplete";
/// 409: the attempt has ended, otherwise than this report says.
pub const ATTEMPT_FINISHED: &str = "attempt_finished";
/// 409: another artifact was uploaded under this name.
pub const ARTIFACT_CONFLICT: &str = "artifact_conflict";
/// 422: the bytes do not have the digest that was named.
pub const DIGEST_MISMATCH: &str = "digest_mismatch";
/// 422: a secret artifact needs a secret store that takes it.
pub const SECRET_ARTIFACTS_UNAVAILABLE: &str = "secret_artifacts_unavailable";
/// 401: a newer session of this runner exists.
pub const SESSION_SUPERSEDED: &str = "session_superseded";
/// 422: the command policy breaks a rule; `errors` names each place.
pub const INVALID_COMMAND_POLICY: &str = "invalid_command_policy";
/// 422: the runner used weaker isolation than the JobSpec asks for.
pub const ISOLATION_TOO_WEAK: &str = "isolation_too_weak";
