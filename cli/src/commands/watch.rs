//! Following an operation: what changed, as it changes, and how it ended. On a terminal the lines of what
//! changed stand above a few that move; elsewhere there is a line a change and nothing else.

use std::collections::HashMap;
use std::time::Duration;

use chrono::Utc;
use control_plane_api::{ListNodeRunsQuery, NodeRun, NodeRunState, Operation, OperationState, WaitingFor};
use futures::StreamExt as _;
use kernel::id::OperationId;
use tokio::time::MissedTickBehavior;

use super::progress::Progress;
use super::stalled::stalled;
use super::times::{self, Times};
use crate::args::Watch;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::{age, duration, mark};

/// Events that come together are shown together.
const QUIET: Duration = Duration::from_millis(80);
/// How often nodes that were handed over are looked after.
const LOOK: Duration = Duration::from_secs(3);
/// How a node stands that never had its turn.
const NOT_STARTED: &str = "not started";
/// How often the moving lines move.
const FRAME: Duration = Duration::from_millis(250);

pub async fn run(what: &Watch, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let id = super::intervene::operation_id(&what.operation)?;
    follow(id, what.until_gate, platform, printer).await
}

/// Follows `id` until it ends, or until it waits for a person when `until_gate` says so.
///
/// # Errors
/// When the service refuses; a broken connection is resumed.
pub async fn follow(
    id: OperationId,
    until_gate: bool,
    platform: &Platform,
    printer: Printer,
) -> Result<Exit, CliError> {
    let operation = platform.control.operation(id).await?;
    let mut view = View {
        live: Progress::for_people(printer),
        ..View::default()
    };
    if let Some(exit) = view.show(&operation, until_gate, platform, printer).await? {
        return Ok(exit);
    }
    let mut events = std::pin::pin!(platform.control.watch(id, operation.last_event));
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut frames = tokio::time::interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while printer.is_heard() {
        let event = tokio::select! {
            event = events.next() => event,
            _ = frames.tick(), if view.live.is_some() => {
                view.draw();
                continue;
            }
            _ = looks.tick(), if view.hands_over() && !printer.is_json() => {
                view.show_stalled(id, platform, printer).await?;
                continue;
            }
        };
        let Some(event) = event else { break };
        let event = event?;
        printer.event(&event, || None);
        // Take whatever else is there already.
        while let Ok(Some(more)) = tokio::time::timeout(QUIET, events.next()).await {
            printer.event(&more?, || None);
        }
        let operation = platform.control.operation(id).await?;
        if let Some(exit) = view.show(&operation, until_gate, platform, printer).await? {
            return Ok(exit);
        }
    }
    if !printer.is_heard() {
        // The reader has what it wanted; the operation goes on without one.
        return Ok(Exit::Success);
    }
    let operation = platform.control.operation(id).await?;
    view.show(&operation, until_gate, platform, printer)
        .await?
        .ok_or_else(|| {
            CliError::new(Exit::Internal, "the live view ended before the operation did")
                .hint(format!("'platform watch {id}' goes on"))
        })
}

#[derive(Default)]
struct View {
    nodes: HashMap<String, (NodeRunState, u32)>,
    waiting: Vec<WaitingFor>,
    /// What was said last of each node that waits for a runner.
    stalled: HashMap<String, String>,
    paused: bool,
    /// The moving lines, on a terminal.
    live: Option<Progress>,
}

impl View {
    /// Says something that stays, above what moves.
    fn say(&mut self, printer: Printer, text: impl AsRef<str>) {
        if let Some(live) = &mut self.live {
            live.clear();
        }
        printer.say(text);
    }

    fn draw(&mut self) {
        if let Some(live) = &mut self.live {
            live.draw();
        }
    }

    /// Whether some node was handed over and does not run yet.
    fn hands_over(&self) -> bool {
        self.nodes.values().any(|(state, _)| *state == NodeRunState::Dispatched)
    }

    /// Says why nodes wait for a runner; the same reason once.
    async fn show_stalled(&mut self, id: OperationId, platform: &Platform, printer: Printer) -> Result<(), CliError> {
        let runs = node_runs(id, platform).await?;
        let now = stalled(&runs, platform).await;
        for stalled in &now {
            if self.stalled.get(&stalled.node) != Some(&stalled.why) {
                self.say(printer, stalled.line());
            }
        }
        self.stalled = now.into_iter().map(|stalled| (stalled.node, stalled.why)).collect();
        Ok(())
    }

    /// Prints what changed; gives the exit when there is nothing more to follow.
    async fn show(
        &mut self,
        operation: &Operation,
        until_gate: bool,
        platform: &Platform,
        printer: Printer,
    ) -> Result<Option<Exit>, CliError> {
        let runs = node_runs(operation.summary.id, platform).await?;
        for run in &runs {
            let now = (run.state, run.run);
            let before = self.nodes.insert(run.node_id.clone(), now);
            let quiet = matches!(
                run.state,
                NodeRunState::Pending | NodeRunState::Ready | NodeRunState::Dispatched
            ) || run.kind == "join"
                // What never had its turn is told once, at the end.
                || standing(run) == NOT_STARTED
                || (before.is_none() && run.run < operation.summary.run);
            if before != Some(now) && !quiet {
                self.say(printer, node_line(run));
            }
        }
        if operation.waiting_for != self.waiting {
            let new: Vec<String> = operation
                .waiting_for
                .iter()
                .filter(|waiting| !self.waiting.contains(waiting))
                .map(|waiting| format!("{}{}", waiting_line(waiting), what_helps(operation.summary.id, waiting)))
                .collect();
            for line in new {
                self.say(printer, line);
            }
            self.waiting.clone_from(&operation.waiting_for);
        }
        let paused = operation.summary.state == OperationState::Paused;
        if paused && !self.paused {
            self.say(printer, "◷ paused; 'platform resume' lets it go on");
        }
        self.paused = paused;
        if let Some(live) = &mut self.live {
            live.update(operation, &runs, platform);
        }
        let exit = ending(operation, until_gate);
        if exit.is_some() {
            // Nothing moves any more.
            self.live = None;
        }
        if exit == Some(Exit::Unresolved) {
            printer.say(unresolved(operation, &runs));
        } else if exit.is_some_and(|exit| exit != Exit::Waiting) {
            printer.say(summary(operation, &runs));
        }
        if printer.is_json() && exit.is_some_and(|exit| exit != Exit::Waiting) {
            printer.value(operation, String::new);
        }
        Ok(exit)
    }
}

/// The exit of an operation that need not be followed any longer.
fn ending(operation: &Operation, until_gate: bool) -> Option<Exit> {
    match operation.summary.state {
        OperationState::Succeeded => Some(Exit::Success),
        OperationState::Failed | OperationState::Compensated => Some(Exit::Untrue),
        OperationState::Cancelled => Some(Exit::Cancelled),
        // Nothing moves until somebody outside has found out and said so.
        OperationState::Unresolved => Some(Exit::Unresolved),
        _ => {
            let person = |w: &WaitingFor| matches!(w, WaitingFor::Gate { .. } | WaitingFor::Intervention { .. });
            (until_gate && operation.waiting_for.iter().any(person)).then_some(Exit::Waiting)
        }
    }
}

/// Every node run, in plan order.
///
/// # Errors
/// When the service refuses.
pub async fn node_runs(id: OperationId, platform: &Platform) -> Result<Vec<NodeRun>, CliError> {
    let mut query = ListNodeRunsQuery {
        limit: Some(1000),
        ..ListNodeRunsQuery::default()
    };
    let mut runs = Vec::new();
    loop {
        let page = platform.control.node_runs(id, &query).await?;
        runs.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Ok(runs);
        }
    }
}

fn node_line(run: &NodeRun) -> String {
    let now = Utc::now();
    let times = Times::of(run, now).filter(|_| run.ended_at.is_some());
    let took = match (times, times::runner(run)) {
        (Some(times), _) => format!("  {}", times.text()),
        (None, Some(runner)) => format!("  on {runner}"),
        (None, None) => String::new(),
    };
    let message = run
        .message
        .as_ref()
        .filter(|m| !m.is_empty())
        .map(|m| format!("\n    {m}"))
        .unwrap_or_default();
    format!(
        "{} {:<32} {}{took}{message}",
        mark(run.state.as_str()),
        run.node_id,
        standing(run)
    )
}

/// What an operation waits for, as a line.
pub fn waiting_line(waiting: &WaitingFor) -> String {
    let now = Utc::now();
    match waiting {
        WaitingFor::Claim {
            resource_id,
            holder,
            since,
            holds,
            ..
        } => {
            let age = age(*since, now);
            match holds {
                true => format!("◷ waits for {resource_id}: held by operation {holder} for {age}"),
                false => format!("◷ waits for {resource_id}: operation {holder} is ahead in the queue, for {age}"),
            }
        }
        WaitingFor::Gate {
            node_id,
            role,
            excluded,
            since,
            ..
        } => {
            let not = match excluded.as_slice() {
                [] => String::new(),
                subjects => format!(", not by {}", subjects.join(" or ")),
            };
            format!(
                "◷ gate {node_id} waits for approval by role {role}{not}, for {}",
                age(*since, now)
            )
        }
        WaitingFor::Intervention {
            node_id,
            why,
            unresolved: true,
            ..
        } => format!("? {node_id} is unresolved, what became of it is not known: {why}"),
        WaitingFor::Intervention {
            node_id, why, choices, ..
        } => {
            format!(
                "? {node_id} waits for an operator: {why}\n    choices: {}",
                choices.join(", ")
            )
        }
        WaitingFor::Dependency {
            name,
            since,
            tries,
            last_error,
        } => {
            format!(
                "◷ waits for {name} for {}, {tries} tries: {last_error}",
                age(*since, now)
            )
        }
        WaitingFor::Time { node_id, until } => format!("◷ {node_id} is tried again in {}", duration(*until - now)),
    }
}

/// What the person who is waited for types next, as further lines.
fn what_helps(id: OperationId, waiting: &WaitingFor) -> String {
    match waiting {
        WaitingFor::Gate { .. } => format!("\n    what it covers, and how to decide: platform get gates {id}"),
        WaitingFor::Intervention {
            node_id,
            unresolved: true,
            ..
        } => format!("\n{}", how_to_resolve(id, node_id)),
        WaitingFor::Intervention { node_id, .. } => format!(
            "\n    once more: platform retry {id} --node '{node_id}'\n    without it: platform skip {id} '{node_id}' -m WHY"
        ),
        WaitingFor::Claim { .. } | WaitingFor::Dependency { .. } | WaitingFor::Time { .. } => String::new(),
    }
}

fn how_to_resolve(id: OperationId, node: &str) -> String {
    format!(
        "    find out: platform logs {id} --node '{node}'\n    then settle it: platform resolve {id} '{node}' --outcome \
         failed -m WHY\n    or, when it was done: platform resolve {id} '{node}' --outcome succeeded --evidence FILE -m WHY"
    )
}

/// Why an operation that is unresolved is not waited for.
fn unresolved(operation: &Operation, runs: &[NodeRun]) -> String {
    let unknown = runs.iter().filter(|run| run.state == NodeRunState::Unresolved);
    let nodes: Vec<&str> = unknown.map(|run| run.node_id.as_str()).collect();
    let id = operation.summary.id;
    format!(
        "? operation {id} is unresolved: what became of {} is not known\n    it keeps what it has claimed until someone has \
         settled that; then it goes on: platform watch {id}",
        nodes.join(", ")
    )
}

/// How an operation ended: one line, then what was done, failed and not started.
pub fn summary(operation: &Operation, runs: &[NodeRun]) -> String {
    let state = operation.summary.state.as_str();
    let took = operation
        .summary
        .ended_at
        .map(|end| format!(" after {}", duration(end - operation.summary.created_at)));
    let handled = if operation.handled {
        " (a failure was handled)"
    } else {
        ""
    };
    let mut text = format!(
        "{} operation {} {state}{handled}{}",
        mark(state),
        operation.summary.id,
        took.unwrap_or_default()
    );
    if let Some(message) = &operation.message {
        text.push_str(&format!("\n    {message}"));
    }
    let succeeded = operation.summary.state == OperationState::Succeeded;
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    // Of a success only what was not done is worth a line.
    let told = |run: &&NodeRun| run.kind != "join" && !(succeeded && run.state == NodeRunState::Succeeded);
    for run in runs.iter().filter(told) {
        let word = match because(run) {
            Some(why) if succeeded => format!("{}, {why}", standing(run)),
            _ => standing(run),
        };
        match groups.iter_mut().find(|(known, _)| *known == word) {
            Some((_, nodes)) => nodes.push(&run.node_id),
            None => groups.push((word, vec![&run.node_id])),
        }
    }
    for (word, nodes) in groups {
        text.push_str(&format!("\n    {word}: {}", nodes.join(", ")));
    }
    if operation.summary.state == OperationState::Failed {
        text.push_str(&what_next(operation.summary.id, runs));
    }
    text
}

/// Where to look after a failure, and how to carry on.
fn what_next(id: OperationId, runs: &[NodeRun]) -> String {
    let failed =
        |run: &&NodeRun| matches!(run.state, NodeRunState::Failed | NodeRunState::TimedOut) && !run.attempts.is_empty();
    let look = runs
        .iter()
        .find(failed)
        .map(|run| format!("\n    output: platform logs {id} --node '{}'", run.node_id));
    format!(
        "{}\n    carry on, once the cause is mended: platform retry {id}",
        look.unwrap_or_default()
    )
}

/// Why a node did not run, where its own message does not say it.
pub fn because(run: &NodeRun) -> Option<&'static str> {
    match (run.state, run.reason.as_deref()?) {
        (NodeRunState::Skipped, "condition") => Some("its condition did not hold"),
        (NodeRunState::Skipped, "operator") => Some("skipped by an operator"),
        (NodeRunState::Skipped, "needs_not_met") => Some("what it needs did not end as it must"),
        (NodeRunState::Skipped, "gate_closed") => Some("its gate did not open"),
        (NodeRunState::Skipped, "nothing_behind") => Some("nothing behind it could start any more"),
        (NodeRunState::Skipped, "lane_stopped") => Some("too many items before it failed"),
        (NodeRunState::Skipped, "not_started") => Some("the run ended before its turn"),
        _ => None,
    }
}

/// How a node stands, as a person says it: what never had its turn was not started, whatever the reason.
pub fn standing(run: &NodeRun) -> String {
    let never = ["not_started", "lane_stopped", "needs_not_met", "gate_closed"];
    match run.state {
        NodeRunState::Skipped if run.reason.as_deref().is_some_and(|reason| never.contains(&reason)) => {
            NOT_STARTED.to_owned()
        }
        NodeRunState::Succeeded => "done".to_owned(),
        state => state.as_str().replace('_', " "),
    }
}
