//! The wire of resource-catalog-service: what its endpoints take and give, and a [`Client`] for them.
//!
//! This crate exists so that control-plane, the CLI and tools can speak to the catalog without its
//! server. Invariants: it compiles without any server crate; a reader ignores fields it does not
//! know; [`pin_of`] is the one definition of what a binding pin covers, used on both sides.

mod capability;
mod client;
mod edge;
mod feed;
mod page;
mod pin;
mod resource;
mod resource_type;
mod update;
mod validation;

pub use audit::{AuditFact, AuditPage, AuditQuery, ChainHead, ChainPage};
pub use capability::{ApplyCapabilityDefinition, CapabilityDefinition, CapabilityDefinitionPage};
pub use client::Client;
pub use client_kit::{Answer, ClientError, FieldError};
pub use edge::{Edge, EdgePage, EdgeType};
pub use feed::{FeedPage, FeedQuery, SnapshotLine, WatchQuery};
pub use page::{ListDefinitionsQuery, ListEdgesQuery, ListResourcesQuery};
pub use pin::{PinInputs, PinnedCapability, pin_of};
pub use resource::{
    ApplyResource, CreateResource, Health, ObserveCapability, Provenance, ProvidedCapability, Resource, ResourcePage,
};
pub use resource_type::{
    ApplyResourceType, EdgeRule, EffectiveResourceType, OnDelete, ResourceType, ResourceTypePage, Transition,
};
pub use update::{Difference, Outcome, UpdateConflict, UpdateOutcome};
pub use validation::{
    CapabilityRequirement, Fault, FaultCode, ValidatedResource, ValidationItem, ValidationRequest, ValidationResponse,
    ValidationResult,
};
