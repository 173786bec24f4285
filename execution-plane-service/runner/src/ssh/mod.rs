//! Reaching targets with the OpenSSH client.
//!
//! Invariants: a host key is compared with what the resource says and never learnt; everything that
//! an attempt starts on a target carries `PLATFORM_ATTEMPT=<attempt id>` in its environment, so that
//! a sweep can find it whatever it forked; how a remote command ended is read from the client's own
//! log, not from anything that the command could print.
//!
//! What a job deploys on purpose must outlive it and therefore sheds the mark:
//! `env -u PLATFORM_ATTEMPT setsid PROGRAM ... &`, or a service manager starts it.

pub(crate) mod access;
pub(crate) mod agent;
pub(crate) mod client;
pub(crate) mod log;
pub(crate) mod quote;
pub(crate) mod sweep;
pub(crate) mod wrapper;

pub(crate) use access::Access;
