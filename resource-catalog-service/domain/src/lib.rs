//! The rules of the catalog: what a resource type allows, what a capability means, and what a write
//! makes of a resource.
//!
//! Everything here is a pure function of its arguments: no clock, no randomness, no store. Ids and
//! time come in; a next state or a list of faults comes out. Invariants: a refused write changes
//! nothing and names every fault; a version is its predecessor plus one; a capability is only ever
//! added with evidence that passed for it.

pub mod apply;
pub mod builtin;
pub mod capability;
pub mod change;
pub mod edge;
pub mod fault;
pub mod filter;
pub mod lifecycle;
pub mod limits;
pub mod observe;
pub mod ratchet;
pub mod resource;
pub mod resource_type;
pub mod schema;
pub mod types;
pub mod update;
pub mod validation;

pub use apply::{Desired, apply, create};
pub use capability::{Capabilities, CapabilityDefinition};
pub use change::{Change, Difference, VersionChanges};
pub use edge::{Edge, EdgeFacts, EdgeRule, EdgeType, OnDelete};
pub use fault::{Fault, FaultCode};
pub use filter::{CapabilityFilter, Membership, ResourceFilter};
pub use lifecycle::Transitions;
pub use resource::{Health, Provenance, Provided, Resource};
pub use resource_type::{ResolvedType, TypeDefinition};
pub use types::Types;
pub use update::{Conflict, Refusal};
