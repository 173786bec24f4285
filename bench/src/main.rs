//! `make bench`: figures beside their peers, measured in the same run on the same server.
//!
//! Four platform processes talk over authenticated HTTP, fsync is on, row-level security is on. Rounds
//! alternate with the peer's; each figure is the median of its rounds, with the least and the greatest.

#![allow(clippy::print_stdout)]

mod ansible;
mod commits;
mod dags;
mod dbos;
mod machine;
mod table;
mod updates;

use std::path::PathBuf;

use commits::Counter;
use e2e::{Deployment, Options};
use machine::Machine;
use table::Table;

/// Rounds of each figure.
pub const ROUNDS: usize = 5;
/// Nodes of a chain and of a fan-out.
pub const SIZE: usize = 40;
/// One-node operations started together.
pub const OPERATIONS: usize = 100;
/// The parts that can be asked for alone.
const PARTS: [&str; 3] = ["dags", "updates", "ansible"];

#[tokio::main]
async fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = only.iter().find(|word| !PARTS.contains(&word.as_str())) {
        println!("there is no part {unknown:?}; there are {}", PARTS.join(", "));
        std::process::exit(2);
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|word| word == name);
    let options = Options {
        lease_seconds: 30.0,
        grace_seconds: 15.0,
        capacity: 128,
        ..Options::default()
    };
    let deployment = Deployment::start(&options).await;
    let counter = Counter::connect(&deployment.database).await;
    let machine = Machine::look(&counter).await;
    let mut table = Table::default();
    if wanted("dags") {
        dags::run(&deployment, &counter, &mut table).await;
    }
    if wanted("updates") {
        updates::run(&deployment, &mut table).await;
    }
    if wanted("ansible") {
        ansible::run(&deployment, &mut table).await;
    }
    drop(counter);
    deployment.stop().await;
    println!("{}", table.text(&machine));
    if let Some(file) = std::env::var_os("PLATFORM_BENCH_FILE").map(PathBuf::from) {
        table
            .save(&machine, &file)
            .expect("the file of the figures can be written");
        println!("\nall rounds: {}", file.display());
    }
}
