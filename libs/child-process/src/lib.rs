//! Child processes that cannot outlive the process that started them, not even when it is ended
//! with `kill -9`.
//!
//! The embedded platform starts servers, hosts and runners as children. A parent that is killed
//! runs no clean-up code, so the kernel has to do it: every child asks for a signal at its
//! parent's death.
//!
//! Invariants:
//! - The kernel sends that signal when the *thread* that started the child ends. So each child is
//!   started from a keeper thread of its own, which lives exactly as long as the child.
//! - A parent that dies before the child could ask for the signal is noticed: the child compares
//!   its parent and ends itself before the program starts.
//! - Signals go through a process descriptor, never to a number that another process may have got
//!   meanwhile.

mod account;
mod kept;
mod launch;

pub use account::{Account, AccountError};
pub use kept::KeptChild;
pub use launch::{DeathSignal, Launch, LaunchError};
pub use rustix::process::Signal;
