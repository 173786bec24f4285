//! Where a kill test may end a runner: before and after each thing that others can see.

failpoints::register! {
    /// Every failpoint of a runner.
    pub const POINTS = [
        "runner.lease.received",
        "runner.lease.recorded",
        "runner.start.recorded",
        "runner.spawn.before",
        "runner.spawn.after",
        "runner.started.sent",
        "runner.job.ended",
        "runner.result.recorded",
        "runner.output.sent",
        "runner.finish.before",
        "runner.finish.sent",
        "runner.attempt.forgotten",
    ];
}
