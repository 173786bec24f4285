//! Parameters of verification jobs: `{checks: [...]}`.

use super::check::{self, Check};
use super::fields::Fields;
use crate::fault::FaultCode;

/// Checks and nothing else; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct VerificationJob {
    pub checks: Vec<Check>,
}

pub(super) fn read(fields: &mut Fields<'_>) -> Option<VerificationJob> {
    fields.require("checks");
    if fields
        .raw("checks")
        .and_then(|value| value.as_array())
        .is_some_and(Vec::is_empty)
    {
        fields.fault("checks", FaultCode::InvalidValue, "at least one check");
    }
    Some(VerificationJob {
        checks: check::read_list(fields),
    })
}
