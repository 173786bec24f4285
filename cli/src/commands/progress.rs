//! The moving part of `watch` on a terminal: how long it takes so far, how far it is, and what each
//! running node does at this moment.
//!
//! Invariant: it decorates and decides nothing. What cannot be had (a caller who may not read output, an
//! execution-plane that does not answer) leaves a gap in a line.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use control_plane_api::{NodeRun, NodeRunState, Operation, WaitingFor};
use execution_plane_api::{ExecutionPlane, OutputEvent};
use futures::StreamExt as _;
use kernel::id::AttemptId;
use tokio::task::JoinHandle;

use super::last_line::LastLine;
use super::watch::waiting_line;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{Screen, age, mark};

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// Nodes with a line of their own; of more it is said how many.
const SHOWN: usize = 8;
/// Chunks before the newest that are read when a job is found running.
const LOOK_BACK: u64 = 50;

/// The live lines of one operation.
pub struct Progress {
    screen: Screen,
    turn: usize,
    begun: DateTime<Utc>,
    head: String,
    running: Vec<Running>,
    waiting: Vec<WaitingFor>,
    tails: HashMap<AttemptId, Tail>,
}

struct Running {
    node: String,
    state: &'static str,
    since: Option<DateTime<Utc>>,
    attempt: Option<AttemptId>,
}

impl Progress {
    /// Where they can be drawn and someone looks at them.
    pub fn for_people(printer: Printer) -> Option<Self> {
        let screen = Screen::of_terminal().filter(|_| !printer.is_json())?;
        Some(Self {
            screen,
            turn: 0,
            begun: Utc::now(),
            head: String::new(),
            running: Vec::new(),
            waiting: Vec::new(),
            tails: HashMap::new(),
        })
    }

    /// Takes in how the operation stands now.
    pub fn update(&mut self, operation: &Operation, runs: &[NodeRun], platform: &Platform) {
        self.begun = operation
            .runs
            .last()
            .map_or(operation.summary.created_at, |run| run.started_at);
        self.head = head(operation, runs);
        self.waiting.clone_from(&operation.waiting_for);
        self.running = runs.iter().filter_map(running).collect();
        let live: Vec<AttemptId> = self.running.iter().filter_map(|running| running.attempt).collect();
        self.tails.retain(|attempt, _| live.contains(attempt));
        for attempt in live.into_iter().take(SHOWN) {
            self.tails
                .entry(attempt)
                .or_insert_with(|| Tail::of(attempt, platform.execution.clone()));
        }
    }

    /// Draws the next frame.
    pub fn draw(&mut self) {
        self.turn = (self.turn + 1) % SPINNER.len();
        let (_, rows) = Screen::size();
        let lines = self.lines(Utc::now(), rows.saturating_sub(2).max(1));
        self.screen.draw(&lines);
    }

    /// Takes the lines away, for others that stay.
    pub fn clear(&mut self) {
        self.screen.clear();
    }

    fn lines(&self, now: DateTime<Utc>, most: usize) -> Vec<String> {
        let mut lines = vec![format!(
            "{} {:<6} {}",
            SPINNER[self.turn],
            age(self.begun, now),
            self.head
        )];
        for running in self.running.iter().take(SHOWN) {
            let took = running.since.map(|since| age(since, now)).unwrap_or_default();
            let said = running
                .attempt
                .and_then(|attempt| self.tails.get(&attempt))
                .map(Tail::said)
                .unwrap_or_default();
            lines.push(format!(
                "  {} {:<32} {took:<6} {said}",
                mark(running.state),
                running.node
            ));
        }
        if self.running.len() > SHOWN {
            lines.push(format!("  … and {} more", self.running.len() - SHOWN));
        }
        for waiting in &self.waiting {
            let line = waiting_line(waiting);
            lines.push(format!("  {}", line.lines().next().unwrap_or_default()));
        }
        lines.truncate(most);
        lines
    }
}

fn is_moving(state: NodeRunState) -> bool {
    matches!(
        state,
        NodeRunState::Dispatched | NodeRunState::Running | NodeRunState::Verifying
    )
}

fn running(run: &NodeRun) -> Option<Running> {
    let attempt = run.attempts.last().filter(|attempt| attempt.status.is_none());
    is_moving(run.state).then(|| Running {
        node: run.node_id.clone(),
        state: run.state.as_str(),
        since: run.started_at.or(attempt.map(|attempt| attempt.dispatched_at)),
        attempt: attempt.map(|attempt| attempt.attempt_id),
    })
}

/// `3 of 11 done, 2 running, 1 failed`.
fn head(operation: &Operation, runs: &[NodeRun]) -> String {
    let nodes: Vec<&NodeRun> = runs.iter().filter(|run| run.kind != "join").collect();
    let count = |wanted: &dyn Fn(NodeRunState) -> bool| nodes.iter().filter(|run| wanted(run.state)).count();
    let done = count(&|state| state == NodeRunState::Succeeded);
    let mut text = format!("{}: {done} of {} done", operation.summary.state.as_str(), nodes.len());
    let others = [
        ("running", count(&is_moving)),
        (
            "failed",
            count(&|state| matches!(state, NodeRunState::Failed | NodeRunState::TimedOut)),
        ),
        ("skipped", count(&|state| state == NodeRunState::Skipped)),
        ("not known", count(&|state| state == NodeRunState::Unresolved)),
    ];
    for (word, count) in others.into_iter().filter(|(_, count)| *count > 0) {
        text.push_str(&format!(", {count} {word}"));
    }
    text
}

/// The output of a running attempt, followed for its last line.
struct Tail {
    last: Arc<Mutex<LastLine>>,
    task: JoinHandle<()>,
}

impl Tail {
    fn of(attempt: AttemptId, execution: ExecutionPlane) -> Self {
        let last = Arc::new(Mutex::new(LastLine::default()));
        let kept = last.clone();
        let task = tokio::spawn(async move {
            let Ok(known) = execution.attempt(attempt).await else {
                return;
            };
            let after = known.output.last_sequence.saturating_sub(LOOK_BACK);
            let mut events = std::pin::pin!(execution.tail(attempt, after));
            while let Some(Ok(OutputEvent::Chunk(chunk))) = events.next().await {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk.data);
            }
        });
        Self { last, task }
    }

    fn said(&self) -> String {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.said().to_owned()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.task.abort();
    }
}
