//! Ending an attempt, also one that has not arrived at execution-plane.

use std::sync::Arc;

use contracts::{ExitCategory, ExitReason};
use control_plane_operation::Input;
use execution_plane_api::CancelRequest;
use kernel::id::AttemptId;

use super::answer::refusal;
use super::{PerformError, Performer, Report};
use crate::engine::Engine;
use crate::points;
use crate::store::effect::OwnedEffect;

impl Performer {
    /// Cancels. When execution-plane never heard of the attempt, its submission is withdrawn: nobody
    /// else works on it now, so it never starts.
    pub(super) async fn cancel(
        &self,
        engine: &Arc<Engine>,
        owned: &OwnedEffect,
        attempt_id: AttemptId,
    ) -> Result<Report, PerformError> {
        points::hit("control_plane.cancel.before_call");
        let request = CancelRequest {
            reason: Some(ExitReason::Person),
        };
        let answer = self.execution(owned.organization).cancel(attempt_id, request).await;
        points::hit("control_plane.cancel.after_call");
        let Err(error) = answer else { return Ok(Report::Done) };
        let problem = refusal("execution-plane", error)?;
        if problem.status != 404 {
            tracing::warn!(%attempt_id, code = %problem.code, "a cancel was refused");
            return Ok(Report::Done);
        }
        engine.withdraw(owned, attempt_id.0).await?;
        Ok(Report::Tell(Input::AttemptRefused {
            attempt_id,
            category: ExitCategory::Unknown,
            detail: "cancelled before it was handed to execution-plane".to_owned(),
        }))
    }
}
