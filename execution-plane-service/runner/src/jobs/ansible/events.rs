//! What the callback plugin tells, and what it adds up to.

use std::collections::BTreeMap;

use kernel::ResourceId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::inventory::Inventory;

#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Play {},
    NoHostsMatched {},
    Task {
        status: TaskStatus,
        host: String,
        task: String,
        #[serde(default)]
        r#become: bool,
        #[serde(default)]
        ignored: bool,
        #[serde(default)]
        message: String,
    },
    Stats {
        hosts: BTreeMap<String, Counts>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskStatus {
    Ok,
    Changed,
    Skipped,
    Failed,
    Unreachable,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Counts {
    ok: u32,
    changed: u32,
    failures: u32,
    unreachable: u32,
    skipped: u32,
    #[serde(default)]
    rescued: u32,
}

/// What stopped a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) unreachable: bool,
    pub(super) task: String,
    pub(super) message: String,
}

/// The story of one run, event by event.
#[derive(Debug, Default)]
pub(super) struct Story {
    pub(super) plays: u32,
    pub(super) no_hosts_matched: bool,
    pub(super) became: bool,
    /// Hosts that took part: at least one task ended there.
    seen: BTreeMap<String, Counts>,
    troubles: BTreeMap<String, Trouble>,
    finished: bool,
    /// Lines that could not be read: then nothing that follows can be relied on.
    pub(super) garbled: u32,
}

impl Story {
    pub(super) fn add(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(Event::Play {}) => self.plays += 1,
            Ok(Event::NoHostsMatched {}) => self.no_hosts_matched = true,
            Ok(Event::Task {
                status,
                host,
                task,
                r#become,
                ignored,
                message,
            }) => {
                self.became |= r#become;
                self.count(status, &host, ignored);
                if matches!(status, TaskStatus::Failed | TaskStatus::Unreachable) && !ignored {
                    let unreachable = status == TaskStatus::Unreachable;
                    self.troubles.insert(
                        host,
                        Trouble {
                            unreachable,
                            task,
                            message,
                        },
                    );
                }
            }
            Ok(Event::Stats { hosts }) => {
                self.seen = hosts;
                self.finished = true;
            }
            Err(_) => self.garbled += 1,
        }
    }

    fn count(&mut self, status: TaskStatus, host: &str, ignored: bool) {
        let counts = self.seen.entry(host.to_owned()).or_default();
        match status {
            TaskStatus::Ok => counts.ok += 1,
            TaskStatus::Changed => {
                counts.ok += 1;
                counts.changed += 1;
            }
            TaskStatus::Skipped => counts.skipped += 1,
            TaskStatus::Failed if ignored => counts.ok += 1,
            TaskStatus::Failed => counts.failures += 1,
            TaskStatus::Unreachable => counts.unreachable += 1,
        }
    }

    /// Hosts with trouble that no rescue mended.
    pub(super) fn troubled(&self) -> impl Iterator<Item = (&String, &Trouble)> {
        self.troubles.iter().filter(|(host, trouble)| {
            let counts = self.seen.get(*host).copied().unwrap_or_default();
            if trouble.unreachable {
                counts.unreachable > 0
            } else {
                counts.failures > 0
            }
        })
    }

    /// Targets on which nothing ran.
    pub(super) fn missing<'a>(&'a self, inventory: &'a Inventory) -> Vec<&'a ResourceId> {
        let ran = |id: &ResourceId| self.seen.keys().any(|host| inventory.target(host) == Some(id));
        inventory.targets().filter(|id| !ran(id)).collect()
    }

    /// Hosts that are no targets; the runner's own `localhost` is none.
    pub(super) fn foreign(&self, inventory: &Inventory) -> Vec<&String> {
        let own = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "::1");
        self.seen
            .keys()
            .filter(|host| inventory.target(host).is_none() && !own(host))
            .collect()
    }

    /// Targets that were changed, failed, and so on, by resource id.
    pub(super) fn hosts(&self, inventory: &Inventory) -> Value {
        let mut hosts = Map::new();
        for id in inventory.targets() {
            let found = self.seen.iter().find(|(host, _)| inventory.target(host) == Some(id));
            let told = match found {
                None => {
                    json!({"status": "not_run", "ok": 0, "changed": 0, "failed": 0, "unreachable": 0, "skipped": 0})
                }
                Some((host, counts)) => self.host(host, *counts),
            };
            hosts.insert(id.to_string(), told);
        }
        Value::Object(hosts)
    }

    fn host(&self, host: &str, counts: Counts) -> Value {
        let trouble = self
            .troubled()
            .find(|(name, _)| *name == host)
            .map(|(_, trouble)| trouble);
        let status = match trouble {
            Some(trouble) if trouble.unreachable => "unreachable",
            Some(_) => "failed",
            None if counts.failures > 0 => "failed",
            None if counts.unreachable > 0 => "unreachable",
            None if !self.finished => "unfinished",
            None if counts.changed > 0 => "changed",
            None => "ok",
        };
        let mut told = json!({
            "status": status, "ok": counts.ok, "changed": counts.changed, "failed": counts.failures,
            "unreachable": counts.unreachable, "skipped": counts.skipped, "rescued": counts.rescued,
        });
        if let (Some(trouble), Some(fields)) = (trouble, told.as_object_mut()) {
            fields.insert("task".to_owned(), trouble.task.clone().into());
            fields.insert("message".to_owned(), trouble.message.clone().into());
        }
        told
    }
}
