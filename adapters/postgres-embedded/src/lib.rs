//! The embedded default of the database concern: one PostgreSQL server as a child process, from
//! the programs that the machine has, on a data directory and a socket directory of its own.
//!
//! A newcomer has no database server to offer, and a production platform has its own; so this
//! adapter starts the real thing, privately, and the services notice no difference.
//!
//! Invariants:
//! - Nothing listens on a network address unless asked for, and then on loopback only.
//! - The server dies with this process, also when this process is killed outright; and a server
//!   left behind by an earlier process is ended before another touches the same data.
//! - One process at a time owns a data directory (a lock that the kernel lets go of).
//! - PostgreSQL never runs as root. Its superuser's password is made here, kept in a file of mode
//!   0600, and appears in no argument, environment, log or error.
//! - A server that dies unasked is started again; one that keeps dying is given up, and said so.

mod account;
mod binaries;
mod cluster;
mod error;
mod layout;
mod leftovers;
mod log;
mod password;
mod server;
mod settings;
mod supervise;

pub use binaries::Binaries;
pub use error::Error;
pub use layout::default_root;
pub use server::{Server, State};
pub use settings::{Config, Durability, Listen};
