//! The platform as processes: killed at every named place, cut off from each other and from their database,
//! paused, overloaded, restarted, and still telling the truth and keeping secrets. And its commands, as people
//! and programs use them.

mod canary;
mod cli;
mod clocks;
mod database;
mod full_disk;
mod invariants;
mod kill;
mod load;
mod network;
mod overload;
mod paused;
mod stage;
mod stories;
mod story;
mod teller;
mod truth;
mod upgrade;
