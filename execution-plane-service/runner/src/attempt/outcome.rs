//! From what happened to what is reported: pure, so that every case can be looked at.
//!
//! Invariants: a stop that nobody could confirm on the targets is never a bare "cancelled"; the real
//! result of a job that ended while it was being cancelled is kept; evidence that the contract asks
//! for decides, against a good and against a bad exit code.

use contracts::{EvidenceResult, ExecutionStatus, ExitCategory, ExitReason, OutputContract};
use serde_json::json;

use crate::jobs::checks::Finding;
use crate::jobs::{RemoteProcesses, WorkEnd};
use crate::stop::StopCause;

/// The decided end.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) end: WorkEnd,
    pub(crate) reason: Option<ExitReason>,
}

/// A job that ended by itself, with what its checks found.
pub(crate) fn by_itself(mut end: WorkEnd, findings: &[Finding], contract: &OutputContract) -> Outcome {
    let named = |name: &str| {
        findings
            .iter()
            .filter(|finding| finding.name == name)
            .collect::<Vec<_>>()
    };
    let passed = |name: &String| {
        let found = named(name);
        !found.is_empty() && found.iter().all(|finding| finding.result == EvidenceResult::Passed)
    };
    let proven = !contract.evidence.is_empty() && contract.evidence.iter().all(passed);
    if end.status == ExecutionStatus::Succeeded {
        if let Some(finding) = worst(findings) {
            end.status = ExecutionStatus::Failed;
            end.category = match finding.result {
                EvidenceResult::Inconclusive => ExitCategory::InfrastructureError,
                _ => ExitCategory::ValidationError,
            };
            end.message = finding.told();
        } else if let Some(name) = contract.evidence.iter().find(|name| named(name).is_empty()) {
            end.status = ExecutionStatus::Failed;
            end.category = ExitCategory::ValidationError;
            end.message = format!("the contract asks for evidence {name:?}, which no check of the job yields");
        }
    } else if end.ran_through && proven {
        end.status = ExecutionStatus::Succeeded;
        end.category = ExitCategory::Success;
        end.message = format!("all evidence of the contract passed, although: {}", end.message);
    }
    Outcome { end, reason: None }
}

/// The finding that speaks most clearly against success.
fn worst(findings: &[Finding]) -> Option<&Finding> {
    let with = |result| findings.iter().find(move |finding| finding.result == result);
    with(EvidenceResult::Failed).or_else(|| with(EvidenceResult::Inconclusive))
}

/// A job that was ended, or that ended while it was being ended.
pub(crate) fn stopped(mut end: WorkEnd, cause: StopCause, begun: bool, remote: &RemoteProcesses) -> Outcome {
    let real = json!({
        "status": end.status, "code": end.code, "category": end.category, "message": end.message,
    });
    if begun {
        end.outputs.insert("result_before_stop".to_owned(), real);
    }
    let (status, category, reason, mut message) = match cause {
        StopCause::Cancelled => (
            ExecutionStatus::Cancelled,
            ExitCategory::Unknown,
            ExitReason::Person,
            "cancelled".to_owned(),
        ),
        StopCause::TimedOut => (
            ExecutionStatus::TimedOut,
            ExitCategory::Unknown,
            ExitReason::Timeout,
            "the time limit was reached".to_owned(),
        ),
        StopCause::LeaseLapsed | StopCause::LeaseGone => (
            ExecutionStatus::Failed,
            ExitCategory::InfrastructureError,
            ExitReason::LostRunner,
            "the runner could not renew its lease and ended the job".to_owned(),
        ),
        StopCause::ShutDown => (
            ExecutionStatus::Failed,
            ExitCategory::InfrastructureError,
            ExitReason::LostRunner,
            "the runner was shut down".to_owned(),
        ),
    };
    if !begun {
        message.push_str(" before the job began");
    }
    end.status = status;
    end.category = category;
    end.message = message;
    tell_remote(&mut end, remote);
    Outcome {
        end,
        reason: Some(reason),
    }
}

/// What a sweep found goes into the outputs; what it could not find out makes the end unresolved.
pub(crate) fn tell_remote(end: &mut WorkEnd, remote: &RemoteProcesses) {
    match remote {
        RemoteProcesses::None => {}
        RemoteProcesses::Ended => {
            end.outputs.insert("remote_processes".to_owned(), "ended".into());
        }
        RemoteProcesses::Unknown(doubts) => {
            end.outputs.insert("remote_processes".to_owned(), "unknown".into());
            end.outputs.insert("remote_doubts".to_owned(), json!(doubts));
            let first = doubts.first().map(String::as_str).unwrap_or_default();
            end.message = format!("{}; a remote process may still run ({first})", end.message);
            if end.status != ExecutionStatus::Failed {
                end.status = ExecutionStatus::Failed;
                end.category = ExitCategory::Unknown;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;
    use contracts::EvidenceType;

    fn finding(name: &str, result: EvidenceResult) -> Finding {
        Finding {
            name: name.to_owned(),
            evidence_type: EvidenceType::CommandCheck,
            capability: "web.http".parse().unwrap(),
            resource: None,
            result,
            message: "seen".to_owned(),
            observed_at: Utc::now(),
            source: Vec::new(),
            from_job_spec: None,
        }
    }

    fn contract(evidence: &[&str]) -> OutputContract {
        OutputContract {
            evidence: evidence.iter().map(|&name| name.to_owned()).collect(),
            ..OutputContract::default()
        }
    }

    fn exit_one() -> WorkEnd {
        let mut end = WorkEnd::failed(ExitCategory::Unknown, 1, "already joined");
        end.ran_through = true;
        end
    }

    #[test]
    fn field_note_6_the_evidence_decides_against_either_exit_code() {
        use EvidenceResult::{Failed, Inconclusive, Passed};
        let ok = || WorkEnd::succeeded("done");
        let cases = [
            (
                ok(),
                vec![finding("joined", Failed)],
                ExecutionStatus::Failed,
                ExitCategory::ValidationError,
            ),
            (
                ok(),
                vec![finding("joined", Inconclusive)],
                ExecutionStatus::Failed,
                ExitCategory::InfrastructureError,
            ),
            (ok(), vec![], ExecutionStatus::Failed, ExitCategory::ValidationError),
            (
                ok(),
                vec![finding("joined", Passed)],
                ExecutionStatus::Succeeded,
                ExitCategory::Success,
            ),
            (
                exit_one(),
                vec![finding("joined", Passed)],
                ExecutionStatus::Succeeded,
                ExitCategory::Success,
            ),
            (
                exit_one(),
                vec![finding("joined", Passed), finding("joined", Failed)],
                ExecutionStatus::Failed,
                ExitCategory::Unknown,
            ),
            (
                exit_one(),
                vec![finding("other", Passed)],
                ExecutionStatus::Failed,
                ExitCategory::Unknown,
            ),
        ];
        for (end, findings, status, category) in cases {
            let outcome = by_itself(end, &findings, &contract(&["joined"]));
            assert_eq!(
                (outcome.end.status, outcome.end.category),
                (status, category),
                "{}",
                outcome.end.message
            );
        }
        let unreachable = WorkEnd::failed(ExitCategory::InfrastructureError, -1, "unreachable");
        let outcome = by_itself(unreachable, &[finding("joined", Passed)], &contract(&["joined"]));
        assert_eq!(
            outcome.end.status,
            ExecutionStatus::Failed,
            "what did not run cannot be proven right"
        );
    }

    #[test]
    fn field_note_8_a_cancelled_job_keeps_its_real_result() {
        let outcome = stopped(
            WorkEnd::succeeded("done"),
            StopCause::Cancelled,
            true,
            &RemoteProcesses::Ended,
        );
        assert_eq!(
            (outcome.end.status, outcome.reason),
            (ExecutionStatus::Cancelled, Some(ExitReason::Person))
        );
        assert_eq!(outcome.end.outputs["result_before_stop"]["status"], "succeeded");
        assert_eq!(outcome.end.outputs["remote_processes"], "ended");
    }

    #[test]
    fn field_note_35_a_stop_that_nobody_could_confirm_is_never_a_bare_cancelled() {
        let doubt = RemoteProcesses::Unknown(vec!["node/web-1: no route".to_owned()]);
        let outcome = stopped(exit_one(), StopCause::Cancelled, true, &doubt);
        assert_eq!(
            (outcome.end.status, outcome.end.category),
            (ExecutionStatus::Failed, ExitCategory::Unknown)
        );
        assert_eq!(outcome.end.outputs["remote_processes"], "unknown");
        assert!(outcome.end.message.contains("may still run"), "{}", outcome.end.message);
    }

    #[test]
    fn field_note_37_what_ended_a_job_is_told_apart() {
        let all = [StopCause::Cancelled, StopCause::TimedOut, StopCause::LeaseLapsed];
        let told = all.map(|cause| {
            let outcome = stopped(exit_one(), cause, true, &RemoteProcesses::None);
            (outcome.end.status, outcome.reason)
        });
        assert_eq!(
            told,
            [
                (ExecutionStatus::Cancelled, Some(ExitReason::Person)),
                (ExecutionStatus::TimedOut, Some(ExitReason::Timeout)),
                (ExecutionStatus::Failed, Some(ExitReason::LostRunner)),
            ]
        );
    }
}
