//! The platform as processes: killed at every named place, cut off from each other and from their database,
//! paused, overloaded, restarted, and still telling the truth and keeping secrets. And its commands, as people
//! and programs use them.

mod canary;
mod cli;
mod database;
mod invariants;
mod kill;
mod load;
mod network;
mod paused;
mod stage;
mod stories;
mod story;
mod teller;
mod truth;
