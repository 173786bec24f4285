//! The authorization table: every operation, once.
//!
//! Only control-plane's own identity may submit, cancel and take results: the role `service` opens
//! the door, [`control_plane`] asks for the name. A runner reaches `/v1/runner/...` and nothing else.

use api_kit::{AccessTable, Caller, Problem, Rule};
use identity::Role::{self, Admin, Approver, Operator, Runner, Service, Viewer};

use crate::config::Config;

const READERS: &[Role] = &[Viewer, Operator, Approver, Admin, Service];
const SERVICES: &[Role] = &[Service];
const RUNNERS: &[Role] = &[Runner];
const KEEPERS: &[Role] = &[Admin, Service];

/// Why what a long poll brings leaves no fact.
const POLLED: &str = "asked again and again for what is there; what comes of it is in the attempts' events";
/// Why what a runner tells while a job runs leaves no fact.
const KEPT: &str = "told many times of one attempt, and kept with it: its events, its output";

/// A JobSpec may be 4 MiB; a batch of large ones is sent in parts.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// The table, its size limits as configured.
pub fn table(config: &Config) -> AccessTable {
    let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    AccessTable::new([
        Rule::new("POST", "/v1/attempt-batches", SERVICES)
            .body_limit(BATCH_BYTES)
            .audited("attempt.submit"),
        Rule::new("GET", "/v1/attempts", READERS),
        Rule::new("GET", "/v1/attempts/{attempt_id}", READERS),
        Rule::new("POST", "/v1/attempts/{attempt_id}/cancel", SERVICES).audited("attempt.cancel"),
        Rule::new("GET", "/v1/attempts/{attempt_id}/output", READERS),
        Rule::new("GET", "/v1/attempts/{attempt_id}/artifacts", READERS),
        Rule::new("GET", "/v1/attempts/{attempt_id}/artifacts/{name}", READERS),
        Rule::new("POST", "/v1/results/pull", SERVICES).audited_when_refused("results.pull", POLLED),
        Rule::new("PUT", "/v1/contents/{sha256}", SERVICES)
            .body_limit(bytes(config.max_content_bytes))
            .audited("content.put"),
        Rule::new("GET", "/v1/contents/{sha256}", READERS),
        Rule::new("PUT", "/v1/command-policies/{name}", KEEPERS)
            .if_match()
            .audited("command_policy.put"),
        Rule::new("GET", "/v1/command-policies/{name}", READERS),
        Rule::new("GET", "/v1/runners", READERS),
        Rule::new("PUT", "/v1/runners/{runner_id}/drain", &[Operator, Admin])
            .if_match()
            .refuses(&[428])
            .audited("runner.drain"),
        Rule::new("GET", "/v1/feed", READERS).refuses(&[410]),
        Rule::new("POST", "/v1/runner/sessions", RUNNERS).audited("runner.open_session"),
        Rule::new("POST", "/v1/runner/leases/pull", RUNNERS).audited_when_refused("lease.pull", POLLED),
        Rule::new("POST", "/v1/runner/leases/renew", RUNNERS).audited_when_refused("lease.renew", POLLED),
        Rule::new("POST", "/v1/runner/attempts/{attempt_id}/started", RUNNERS)
            .audited_when_refused("attempt.report_started", KEPT)
            .refuses(&[409]),
        Rule::new("POST", "/v1/runner/attempts/{attempt_id}/output", RUNNERS)
            .audited_when_refused("attempt.append_output", KEPT)
            .refuses(&[409]),
        Rule::new("PUT", "/v1/runner/attempts/{attempt_id}/artifacts/{name}", RUNNERS)
            .body_limit(bytes(config.max_artifact_bytes))
            .audited("artifact.put")
            .refuses(&[409]),
        Rule::new("POST", "/v1/runner/attempts/{attempt_id}/finish", RUNNERS)
            .audited("attempt.finish")
            .refuses(&[409]),
        Rule::new("GET", "/v1/runner/attempts/{attempt_id}/content", RUNNERS).refuses(&[409]),
        Rule::new("GET", "/v1/runner/attempts/{attempt_id}/inputs/{name}", RUNNERS).refuses(&[409]),
    ])
}

/// Refuses every service but control-plane.
pub fn control_plane(caller: &Caller) -> Result<(), Problem> {
    if caller.subject == "service:control-plane" {
        return Ok(());
    }
    Err(Problem::forbidden("Only control-plane may do this."))
}
