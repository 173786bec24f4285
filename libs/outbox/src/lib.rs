//! Events that are never lost, never doubled and never out of order: outbox, sequencer, feed.
//!
//! An owner writes its events into the table `outbox` in the transaction of the change itself
//! ([`append`], [`append_sqlx`]). One fenced [`Sequencer`] a database carries committed rows into
//! the table `feed`, where each gets its `revision`. Readers ([`Feed`]) see only the feed.
//!
//! Invariants:
//! - A revision is given after commit, so it is never given out of commit order, and a reader that
//!   has seen revision n will never find a new row below n.
//! - Positions are durable before any reader sees them: they are written by a committed,
//!   synchronous transaction.
//! - Rows of one key keep the order in which their owner wrote them.
//! - A row leaves the outbox only in the transaction that puts it into the feed (or parks it). A
//!   transaction held open delays its own rows and nobody else's.
//! - Only the sequencer with the current epoch can write; one that was paused and comes back
//!   changes nothing.
//! - A row that the feed refuses is parked with its reason, and the rest goes on.
//! - Nothing is reaped that is young or that a known consumer has not acknowledged; what is reaped goes
//!   as a whole partition. A reader that comes too late is told so ([`FeedError::TooFarBehind`]). A consumer
//!   that was silent for as long as rows are kept is known no more, so it cannot hold them for ever.
//!
//! Waking is in-process ([`Signal`]) with a sweep at most once a second, so that another process's
//! writes are found as well; idle costs nothing more.

mod append;
mod consumers;
mod event;
mod feed;
mod figures;
mod leader;
mod sequencer;
mod signal;

pub use append::{APPEND, append, append_sqlx};
pub use consumers::{acknowledge, forget, forget_silent, reap};
pub use event::{FeedEvent, FeedPage, NewEvent};
pub use feed::{Feed, FeedError};
pub use figures::{Figures, figures};
pub use leader::{Batch, Leader, LeaderError};
pub use sequencer::{RETENTION, Sequencer};
pub use signal::Signal;

/// The tables, to be copied into a service's first migration. A test of the service may hold its
/// migration against this text.
pub const TABLES: &str = include_str!("../sql/outbox.sql");
