//! Where a kill test may end a runner: before and after each thing that others can see.

failpoints::register! {
    /// Every failpoint of a runner.
    pub const POINTS = [
        "runner.lease.received",
        "runner.lease.recorded",
        "runner.content.before",
        "runner.content.fetched",
        "runner.content.unpacked",
        "runner.input.before",
        "runner.input.written",
        "runner.secrets.before",
        "runner.secrets.resolved",
        "runner.start.recorded",
        "runner.spawn.before",
        "runner.spawn.after",
        "runner.started.sent",
        "runner.kill.before",
        "runner.kill.after",
        "runner.sweep.before",
        "runner.sweep.after",
        "runner.job.ended",
        "runner.result.recorded",
        "runner.artifact.before",
        "runner.artifact.sent",
        "runner.output.sent",
        "runner.finish.before",
        "runner.finish.sent",
        "runner.attempt.forgotten",
    ];
}
