//! The places where a kill test may end this service: before and after each commit.

failpoints::register! {
    /// Every failpoint of this service.
    pub const FAILPOINTS = [
        "execution_plane.submit.before_commit",
        "execution_plane.submit.after_commit",
        "execution_plane.lease.before_commit",
        "execution_plane.lease.after_commit",
        "execution_plane.started.before_commit",
        "execution_plane.started.after_commit",
        "execution_plane.output.before_commit",
        "execution_plane.output.after_commit",
        "execution_plane.artifact.before_commit",
        "execution_plane.artifact.after_commit",
        "execution_plane.finish.before_commit",
        "execution_plane.finish.after_commit",
        "execution_plane.cancel.before_commit",
        "execution_plane.cancel.after_commit",
        "execution_plane.ack.before_commit",
        "execution_plane.ack.after_commit",
        "execution_plane.reap.before_commit",
        "execution_plane.reap.after_commit",
        "execution_plane.sequence.before_commit",
        "execution_plane.sequence.after_commit",
    ];
}
