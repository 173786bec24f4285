//! The proof of an operation: one document from which anyone with the platform's public key can check,
//! offline, that what was provided was proven, by what was run, after what was approved, as planned.
//!
//! The chain: provided capability → evidence → digest of the log or artifact it was read from → attempt →
//! approval → plan digest → pack digest. Every link is a canonical record that names the records it rests
//! on by their digests; the root names all records in order and is signed.
//!
//! Invariants: the document has one form (RFC 8785), so no byte of it can change unnoticed; the plan's own
//! bytes are in it, so its digest and what every approval covers are computed again and not believed; a
//! chain made anew without the key does not verify, whatever it says of itself.

mod export;
mod gates;
mod record;
mod sign;
mod source;
mod verify;

pub use export::{ExportError, export};
pub use record::{
    Approval, Attempt, Attestation, Evidence, FORMAT, Pack, Proof, ProvenPlan, Record, Root, Run, Signature, Source,
    Update,
};
pub use sign::{PublicKey, Signer};
pub use verify::{Fault, ProvenCapability, Verified, verify};
