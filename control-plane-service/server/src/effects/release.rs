//! Letting go of a finished run's finalizers.

use super::answer::refusal;
use super::{PerformError, Performer, Report};
use crate::points;
use crate::store::effect::OwnedEffect;

impl Performer {
    pub(super) async fn release(&self, owned: &OwnedEffect) -> Result<Report, PerformError> {
        points::hit("control_plane.release.before_call");
        let answer = self
            .catalog(owned.organization)
            .release_finalizers(owned.operation)
            .await;
        points::hit("control_plane.release.after_call");
        if let Err(error) = answer {
            // None left to let go of is what was wanted.
            refusal("resource-catalog", error)?;
        }
        Ok(Report::Done)
    }
}
