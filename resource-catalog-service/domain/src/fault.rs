//! What can be wrong with a write. A refusal names every fault it found, each with its place.

use core::fmt;

/// The kind of a fault; its word is stable on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultCode {
    UnknownType,
    UnknownCapability,
    UnknownParent,
    UnknownTarget,
    ParentFixed,
    TypeFixed,
    PrefixFixed,
    PrefixMissing,
    PrefixMismatch,
    PrefixTaken,
    BuiltIn,
    NestedTooDeep,
    InheritanceTooDeep,
    InvalidSchema,
    SchemaViolation,
    Widens,
    TransitionNotAllowed,
    EdgeNotAllowed,
    TargetTypeNotAllowed,
    TooManyTargets,
    TooManySources,
    Cycle,
    Duplicate,
    Contradiction,
    EvidenceMissing,
    NotAVersion,
    NotAnObject,
    NoCanonicalForm,
    InvalidLabel,
    InvalidEnvironment,
    InvalidPrefix,
    TooLarge,
    TooMany,
}

impl FaultCode {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownType => "unknown_type",
            Self::UnknownCapability => "unknown_capability",
            Self::UnknownParent => "unknown_parent",
            Self::UnknownTarget => "unknown_target",
            Self::ParentFixed => "parent_fixed",
            Self::TypeFixed => "type_fixed",
            Self::PrefixFixed => "prefix_fixed",
            Self::PrefixMissing => "prefix_missing",
            Self::PrefixMismatch => "prefix_mismatch",
            Self::PrefixTaken => "prefix_taken",
            Self::BuiltIn => "built_in",
            Self::NestedTooDeep => "nested_too_deep",
            Self::InheritanceTooDeep => "inheritance_too_deep",
            Self::InvalidSchema => "invalid_schema",
            Self::SchemaViolation => "schema_violation",
            Self::Widens => "widens_parent",
            Self::TransitionNotAllowed => "transition_not_allowed",
            Self::EdgeNotAllowed => "edge_not_allowed",
            Self::TargetTypeNotAllowed => "target_type_not_allowed",
            Self::TooManyTargets => "too_many_targets",
            Self::TooManySources => "too_many_sources",
            Self::Cycle => "cycle",
            Self::Duplicate => "duplicate",
            Self::Contradiction => "contradiction",
            Self::EvidenceMissing => "evidence_missing",
            Self::NotAVersion => "not_a_version",
            Self::NotAnObject => "not_an_object",
            Self::NoCanonicalForm => "no_canonical_form",
            Self::InvalidLabel => "invalid_label",
            Self::InvalidEnvironment => "invalid_environment",
            Self::InvalidPrefix => "invalid_prefix",
            Self::TooLarge => "too_large",
            Self::TooMany => "too_many",
        }
    }
}

/// One fault at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// JSON Pointer into what was sent.
    pub pointer: String,
    pub code: FaultCode,
    pub detail: String,
}

impl Fault {
    /// A fault of kind `code` at `pointer`.
    #[must_use]
    pub fn new(pointer: impl Into<String>, code: FaultCode, detail: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            code,
            detail: detail.into(),
        }
    }

    /// The same fault, seen from a value that holds this one at `prefix`.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        self.pointer.insert_str(0, prefix);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.detail)
    }
}

/// `Ok` when there is no fault.
///
/// # Errors
/// The faults, in a fixed order, none twice.
pub fn none(mut faults: Vec<Fault>) -> Result<(), Vec<Fault>> {
    if faults.is_empty() {
        return Ok(());
    }
    faults.sort();
    faults.dedup();
    Err(faults)
}

/// `token` as one step of a JSON Pointer.
#[must_use]
pub fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}
