//! What deciding an operation must come to, as scenarios, as an exhaustive table, and as a model under
//! random plans, answers, repeats, delays, crashes and commands.

mod cancelling;
mod carrying_on;
mod claiming;
mod completion;
mod expressions;
mod gates;
mod invariants;
mod order;
mod plans;
mod prospects;
mod random;
mod scale;
mod skipping;
mod starting;
mod store;
mod table;
mod updates;
mod world;
