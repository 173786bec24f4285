//! Faults of a submitted document: every one of them is told at once, each with its place.

/// One fault, at a JSON Pointer into the document that was handed in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    pub pointer: String,
    pub code: FaultCode,
    pub detail: String,
}

/// What kind of fault it is; the word is stable on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultCode {
    Required,
    UnknownField,
    WrongType,
    InvalidValue,
    TooMany,
    Exclusive,
    Duplicate,
    NotAllowed,
    Missing,
}

impl FaultCode {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::UnknownField => "unknown_field",
            Self::WrongType => "wrong_type",
            Self::InvalidValue => "invalid_value",
            Self::TooMany => "too_many",
            Self::Exclusive => "exclusive",
            Self::Duplicate => "duplicate",
            Self::NotAllowed => "not_allowed",
            Self::Missing => "missing",
        }
    }
}

impl Fault {
    /// A fault at `pointer`.
    #[must_use]
    pub fn new(pointer: impl Into<String>, code: FaultCode, detail: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            code,
            detail: detail.into(),
        }
    }
}

/// `pointer` with one more token, escaped as RFC 6901 says.
#[must_use]
pub fn below(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}
