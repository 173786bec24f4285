//! The places of this service at which a kill test ends the process.

failpoints::register! {
    /// Before and after every commit that promises something.
    pub const FAILPOINTS = [
        "catalog.resource_update.before_commit",
        "catalog.resource_update.after_commit",
        "catalog.validation.before_commit",
        "catalog.validation.after_commit",
        "catalog.finalizers.before_commit",
        "catalog.finalizers.after_commit",
        "catalog.resource.before_commit",
        "catalog.resource.after_commit",
        "catalog.definition.before_commit",
        "catalog.definition.after_commit",
        "catalog.audit_chain.before_commit",
        "catalog.audit_chain.after_commit",
        "catalog.sequencer.before_commit",
        "catalog.sequencer.after_commit",
    ];
}
