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
    "control_plane.results.after_pull",
    "control_plane.results.after_commit",
    "control_plane.feed.before_commit",
    "control_plane.feed.after_commit",
    ];
}

/// Passes a point.
pub fn hit(name: &'static str) {
    failpoints::hit(name);
}
