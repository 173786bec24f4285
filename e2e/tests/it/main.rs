//! The platform as processes: killed at every named place, cut off from its database, restarted, and
//! still telling the truth.

mod kill;
mod stories;
mod story;
