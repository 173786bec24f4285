//! The runner against a small HTTP service that speaks the runner protocol, with real sandboxes, real
//! sshd and real ansible-core. Whatever one of these needs and does not find fails the test and says
//! what to install.

mod ansible;
mod cancelling;
mod failpoints;
mod harness;
mod https;
mod kill;
mod plane;
mod protocol;
mod restart;
mod secrets;
mod ssh;
mod sshd;
mod verification;
