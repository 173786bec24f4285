//! What will be told about an attempt, as it is kept until the service has accepted it.

use std::path::PathBuf;

use contracts::{ExecutionResult, ExecutionStatus, ExitCategory, ExitReason, Isolation, Sensitivity};
use kernel::Sha256Digest;
use serde::{Deserialize, Serialize};

/// The result, and the bytes that go before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) result: ExecutionResult,
    pub(crate) uploads: Vec<Upload>,
    /// Of the job, when it began.
    #[serde(default)]
    pub(crate) isolation_used: Option<Isolation>,
}

/// Bytes of an artifact or of a check's source.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Upload {
    pub(crate) name: String,
    pub(crate) artifact_type: String,
    pub(crate) sensitivity: Sensitivity,
    pub(crate) media_type: Option<String>,
    pub(crate) file: PathBuf,
    pub(crate) sha256: Sha256Digest,
    /// The evidence whose source this is.
    pub(crate) evidence: Option<usize>,
}

impl Report {
    /// Turns the result into a failure; what was found out before stays in `outputs`.
    pub(crate) fn fail(&mut self, category: ExitCategory, message: String) {
        let result = &mut self.result;
        if result.status == ExecutionStatus::Succeeded {
            result.status = ExecutionStatus::Failed;
            result.exit_summary.category = category;
            result.exit_summary.message = message;
        } else {
            result.exit_summary.message = format!("{}; and {message}", result.exit_summary.message);
        }
    }

    /// Marks the result as one for which this runner, not the job, is the reason.
    pub(crate) fn blame_runner(&mut self) {
        self.result.reason = Some(ExitReason::LostRunner);
    }
}
