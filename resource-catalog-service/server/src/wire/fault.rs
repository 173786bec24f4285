use api_kit::{FieldError, Problem};
use resource_catalog_domain::Fault;

/// A domain fault as a field error.
pub fn field_error(fault: Fault) -> FieldError {
    FieldError::new(fault.pointer, fault.code.as_str(), fault.detail)
}

/// 422 with every fault.
pub fn invalid(faults: Vec<Fault>) -> Problem {
    Problem::invalid(faults.into_iter().map(field_error))
}
