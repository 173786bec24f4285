//! The operation: the pure heart of the product. [`decide`] takes the state of one operation and what it
//! was told, and says what changed, what happened and what is to be done; the durable runtime only
//! carries it out.
//!
//! Invariants: deciding does no I/O, reads no clock and draws no random number; the same state and inputs
//! give the same decision. Every command in every state has a defined answer and no accepted command is a
//! no-op. Nothing starts before its needs settled as its edges say, while a gate before it has not passed
//! for exactly what it covers, or without held claims and validated bindings. What has ended never
//! changes. Nothing lets go of a claim while something may still run.

mod change;
pub mod claims;
mod command;
mod contract;
mod decide;
mod decision;
mod derived;
mod effect;
mod event;
mod event_text;
mod expression;
mod id;
mod index;
mod input;
mod lane;
mod lane_order;
mod prospects;
pub mod row;
mod state;
mod status;

pub use change::Change;
pub use command::{
    Command, CommandActor, CommandAnswer, CommandKind, CommandOutcome, Refusal, RefusalCode, Resolution, RetrySelection,
};
pub use decide::{create, decide};
pub use decision::Decision;
pub use effect::{BindingToValidate, Effect, EffectKind};
pub use event::{Actor, Cause, Event, EventKind};
pub use expression::{ExpressionError, Expressions, NodeOutputs};
pub use id::{ClaimRequestId, EffectId, GateId, IdSource, InterventionId};
pub use index::{IndexError, PlanIndex};
pub use input::{BindingFound, Blocker, Input, UpdateOutcome, ValidatedBinding};
pub use row::{
    AttemptRow, BindingRow, CancelProgress, ClaimsState, CommandRow, Failure, GateRow, Moved, NodeRunRow, NodeWait,
    OperationRow, Progress, Rows, RunFailure, RunRow, UpdateRow, ValidationState,
};
pub use state::{NewOperation, OperationState, RestoreError};
pub use status::{AttemptState, GateState, NodeReason, NodeState, OperationStatus, RunEnd, UpdateState, accept_of};
