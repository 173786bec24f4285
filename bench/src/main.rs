//! `make bench`: figures beside their peers, measured in the same run on the same server.
//!
//! Four platform processes talk over authenticated HTTP, fsync is on, row-level security is on. Rounds
//! alternate with the peer's; each figure is the median of its rounds, shown as a ratio.

#![allow(clippy::print_stdout)]

mod ansible;
mod commits;
mod dags;
mod dbos;
mod table;
mod updates;

use e2e::{Deployment, Options};
use table::Table;

/// Rounds of each figure.
pub const ROUNDS: usize = 5;
/// Nodes of a chain and of a fan-out.
pub const SIZE: usize = 40;
/// One-node operations started together.
pub const OPERATIONS: usize = 100;

#[tokio::main]
async fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|word| word == name);
    let options = Options {
        lease_seconds: 30.0,
        grace_seconds: 15.0,
        capacity: 128,
    };
    let deployment = Deployment::start(&options).await;
    let mut table = Table::default();
    if wanted("dags") {
        dags::run(&deployment, &mut table).await;
    }
    if wanted("updates") {
        updates::run(&deployment, &mut table).await;
    }
    if wanted("ansible") {
        ansible::run(&deployment, &mut table).await;
    }
    deployment.stop().await;
    println!("{}", table.text());
    table.save();
}

/// The middle of the values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}
