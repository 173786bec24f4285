//! Who commanded what, on what, with which result, from where.
//!
//! Each command leaves one fact, allowed or refused. The fact of what was done is written in the transaction that does
//! it ([`append`]), so neither is there without the other. After the commit a background task ([`Chainer`]) gives each
//! fact a sequence number and a hash over itself and the hash before it; nothing on the way of a request waits for that.
//!
//! Invariants:
//! - Facts are only added: neither role of a service may change or delete one.
//! - A chain is an organization's own, begins at 1 and has no gap; a fact is in it once.
//! - The hash is over canonical JSON (RFC 8785) of what the API shows, so whoever reads a chain can check it
//!   ([`Verifier`]) without believing the service. A chain that was made anew from its beginning shows by a head that was
//!   kept elsewhere.

mod chained;
#[cfg(feature = "store")]
mod chainer;
mod fact;
#[cfg(feature = "store")]
mod read;
#[cfg(feature = "store")]
mod record;
mod verify;

pub use chained::{ChainHead, ChainPage, ChainedFact, HeadHash, link};
#[cfg(feature = "store")]
pub use chainer::{Chainer, chain_batch};
pub use fact::{AuditFact, AuditPage, AuditQuery};
#[cfg(feature = "store")]
pub use read::{chain, head, list, revision, waiting};
#[cfg(feature = "store")]
pub use record::{NewFact, append, append_sqlx};
pub use verify::{Broken, Verifier};

/// The table of facts, to be copied into a service's migration that has none yet.
pub const FACTS: &str = include_str!("../sql/audit.sql");
/// The chain over them, to be copied into a service's migration as it is: the grants find the service's roles by the
/// owner who runs it.
pub const CHAIN: &str = include_str!("../sql/chain.sql");
