//! The small kernel that every crate may depend on: identifiers, digests, canonical JSON, label
//! selectors, software versions, and errors told in one line.
//!
//! Invariants: nothing here does I/O, reads a clock or draws a random number (except the
//! explicitly named `new_v7` constructors of ids), and nothing knows of a service.

mod causes;
mod string_schema;

pub mod canonical;
pub mod digest;
pub mod id;
pub mod name;
pub mod resource_id;
pub mod selector;
pub mod version;

pub use canonical::{CanonicalError, canonical_bytes, canonical_digest};
pub use causes::with_causes;
pub use digest::Sha256Digest;
pub use name::{DottedName, NameError};
pub use resource_id::{ResourceId, ResourceIdError};
pub use selector::{Selector, SelectorError};
pub use version::{SoftwareVersion, VersionRequirement};
