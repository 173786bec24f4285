//! Isolation without a container engine: bubblewrap for the grade `sandbox`, and plain processes for
//! the grade `process` (development, only when configured).
//!
//! Invariants: a sandboxed command lives in a pid namespace of its own, so ending that namespace's
//! init ends whatever it forked, `setsid` or not; every command is started by one thread that lives
//! as long as the adapter, because "die with the parent" means the *thread* that started it; no
//! secret is an argument of any program.

mod bubblewrap;
mod cgroup;
mod layout;
mod process;
mod procfs;
mod running;
mod starter;

pub use bubblewrap::{Bubblewrap, BubblewrapConfig};
pub use process::{PlainProcess, PlainProcessConfig};
