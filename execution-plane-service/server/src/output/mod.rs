//! Output on its way out: bundled into one blob at the end, tailed live.

pub mod bundle;
pub mod tail;
