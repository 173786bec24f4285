//! The failpoints of this service: before and after each commit and each effect.

failpoints::register! {
    /// Every point, for the test that dies at each.
    pub const POINTS = [
    "control_plane.create.before_commit",
    "control_plane.create.after_commit",
    "control_plane.advance.before_commit",
    "control_plane.advance.after_commit",
    "control_plane.command.before_commit",
    "control_plane.command.after_commit",
    "control_plane.submit.before_call",
    "control_plane.submit.after_call",
    "control_plane.cancel.before_call",
    "control_plane.cancel.after_call",
    "control_plane.validate.before_call",
    "control_plane.validate.after_call",
    "control_plane.update.before_call",
    "control_plane.update.after_call",
    "control_plane.release.before_call",
    "control_plane.release.after_call",
    "control_plane.publish.before_commit",
    "control_plane.publish.after_commit",
    "control_plane.delivery_take.before_commit",
    "control_plane.delivery_take.after_commit",
    "control_plane.delivery.before_call",
    "control_plane.delivery.after_call",
    "control_plane.delivery_settle.before_commit",
    "control_plane.delivery_settle.after_commit",
    "control_plane.preview.before_commit",
    "control_plane.preview.after_commit",
    "control_plane.plan.before_commit",
    "control_plane.plan.after_commit",
    "control_plane.follow.before_commit",
    "control_plane.follow.after_commit",
    "control_plane.project.before_commit",
    "control_plane.project.after_commit",
    "control_plane.rebuild_asked.before_commit",
    "control_plane.rebuild_asked.after_commit",
    "control_plane.rebuild_batch.before_commit",
    "control_plane.rebuild_batch.after_commit",
    "control_plane.rebuild.before_commit",
    "control_plane.rebuild.after_commit",
    "control_plane.due.before_commit",
    "control_plane.due.after_commit",
    "control_plane.withdraw.before_commit",
    "control_plane.withdraw.after_commit",
    "control_plane.failure_noted.before_commit",
    "control_plane.failure_noted.after_commit",
    "control_plane.effects_done.before_commit",
    "control_plane.effects_done.after_commit",
    "control_plane.results.after_pull",
    "control_plane.results.after_commit",
    "control_plane.audit_chain.before_commit",
    "control_plane.audit_chain.after_commit",
    "control_plane.feed.before_commit",
    "control_plane.feed.after_commit",
    ];
}

/// Passes a point.
pub fn hit(name: &'static str) {
    failpoints::hit(name);
}
