//! What deciding comes to.

use chrono::{DateTime, Utc};

use crate::{Change, CommandOutcome, Effect, Event, OperationState};

/// The outcome of one decision. To be stored in one transaction: `changes`, `events`, `effects`,
/// `next_wakeup`. Only after the commit may `state` be used further and the effects be carried out; if
/// the commit fails, the state is to be restored from its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub state: OperationState,
    pub changes: Vec<Change>,
    /// Gapless, in order.
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    /// When to ask again even if nothing comes in; replaces the earlier one.
    pub next_wakeup: Option<DateTime<Utc>>,
    /// One for each command among the inputs, in order.
    pub command_outcomes: Vec<CommandOutcome>,
}
