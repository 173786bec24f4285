//! Real hosts on one machine: each an OpenSSH server on a loopback address of its own, in
//! namespaces of its own, with its own accounts, home, /tmp and data volume.
//!
//! The demo and the end-to-end tests roll out to machines. Pretended ones would prove nothing, and
//! virtual ones are too heavy; so these are as real as a kernel shared with them allows: what one
//! host runs, another cannot see, and what happened on a host can be counted from outside it.
//!
//! Invariants:
//! - Keys are made when the hosts start and lie only in the directory given.
//! - Hosts end with the process that started them, also when that one is killed outright: the
//!   process namespace of each goes, and with it everything that ever started inside.
//! - Nothing of the machine is changed: accounts, `/run/sshd` and configuration exist inside only.
//! - It works as root and as an ordinary user (by user namespaces); login is as `deploy` always.
//!
//! The calls block; they start no threads that a caller must mind.

mod addresses;
mod error;
mod faults;
mod files;
mod host;
mod hosts;
mod keys;
mod processes;
mod sandbox;

pub use error::HostError;
pub use host::Host;
pub use hosts::{Hosts, Options};
pub use processes::HostProcess;

/// The account that SSH logs in to, on every host.
pub const USER: &str = "deploy";

/// The volume that services are deployed to: small, and apart from home, so that it can fill up.
pub const DATA_VOLUME: &str = "/srv";
