//! From a job's pipes to the service: masked, cut into ordered chunks, spooled, sent.
//!
//! Invariants: nothing unmasked is ever written to disk or network; bytes are neither lost nor
//! doubled nor reordered; a limit on size stops the output and says so, never the job.

pub(crate) mod encodings;
pub(crate) mod masker;
pub(crate) mod sender;
pub(crate) mod sink;
pub(crate) mod spool;
pub(crate) mod utf8;

pub(crate) use masker::MaskSet;
pub(crate) use sink::{OutputSink, SourceWriter};
