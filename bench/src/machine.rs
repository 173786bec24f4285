//! What the figures depend on: the machine, and how long it takes to make one commit durable.

use std::time::Instant;

use serde_json::{Value, json};

use crate::commits::Counter;
use crate::table::median;

/// Commits that are timed.
const COMMITS: usize = 200;

/// The machine of a run.
pub struct Machine {
    cores: usize,
    processor: String,
    memory_gib: u64,
    postgres: String,
    /// Processes that wanted to run in the minute before: more than none means that others worked too.
    load: f64,
    /// Milliseconds of one synced commit of one small row with nothing beside it.
    commit_ms: f64,
}

impl Machine {
    /// Looks, and times commits on the server that the figures are measured on.
    pub async fn look(counter: &Counter) -> Self {
        let of = |file: &str, key: &str| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
            line.split_once(':')
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let kib = of("/proc/meminfo", "MemTotal");
        let kib: u64 = kib.trim_end_matches(" kB").parse().unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            processor: of("/proc/cpuinfo", "model name"),
            memory_gib: kib.div_ceil(1 << 20),
            postgres: counter.version().await,
            load: load(),
            commit_ms: commit_ms(counter).await,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        format!(
            "{} cores ({}), {} GiB, PostgreSQL {}, load {:.1} before, one synced commit alone {:.2} ms",
            self.cores, self.processor, self.memory_gib, self.postgres, self.load, self.commit_ms
        )
    }

    /// For the file.
    pub fn json(&self) -> Value {
        json!({
            "cores": self.cores, "processor": self.processor, "memory_gib": self.memory_gib,
            "postgres": self.postgres, "load": self.load, "commit_ms": self.commit_ms,
        })
    }
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(f64::NAN)
}

async fn commit_ms(counter: &Counter) -> f64 {
    counter.run("CREATE TABLE bench_commit (n int)").await;
    let mut times = Vec::with_capacity(COMMITS);
    for _ in 0..COMMITS {
        let started = Instant::now();
        counter.run("INSERT INTO bench_commit VALUES (1)").await;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    median(&times)
}
