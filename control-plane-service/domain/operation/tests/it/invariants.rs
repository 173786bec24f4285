//! What must hold after every step, computed from the store and the plan in the plainest way, never from
//! what the state keeps derived.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_operation::row::{NodeRunRow, RunFailure};
use control_plane_operation::{
    Change, CommandAnswer, Decision, EffectKind, EventKind, GateState, Input, NodeReason, NodeState, OperationStatus,
    PlanIndex, RunEnd, UpdateState, accept_of,
};
use control_plane_plan::{Accept, Need, NodeKind, Plan, PlanNode, covered_by};
use kernel::id::AttemptId;

use crate::prospects;
use crate::store::Store;
use crate::world::World;

/// For each gate the nodes that must not run unless it passed.
#[derive(Clone)]
pub struct Covered(BTreeMap<String, BTreeSet<String>>);

impl Covered {
    pub fn of(plan: &PlanIndex) -> Self {
        let plan = plan.plan();
        let gates = plan
            .nodes
            .iter()
            .filter(|node| matches!(node.action, NodeKind::Gate(_)));
        Self(gates.map(|gate| (gate.id.clone(), guarded(plan, &gate.id))).collect())
    }
}

/// All that is behind the gate, but for what is reached only through a declared handling of its rejection.
fn guarded(plan: &Plan, gate: &str) -> BTreeSet<String> {
    let mut guarded = BTreeSet::new();
    for node in &plan.nodes {
        let needs_pass = |need: &&Need| need.node == gate && !need.accept.contains(&Accept::Failed);
        if node.needs.iter().any(|need| needs_pass(&need)) {
            guarded.insert(node.id.clone());
            guarded.extend(covered_by(plan, &node.id));
        }
    }
    guarded
}

/// A state restored from its rows decides as the state itself did.
pub fn same(live: &Decision, restored: &Decision) {
    assert_eq!(live.events, restored.events, "the same events");
    assert_eq!(live.effects, restored.effects, "the same effects");
    assert_eq!(live.changes, restored.changes, "the same changes");
    assert_eq!(live.next_wakeup, restored.next_wakeup, "the same wake-up");
    assert_eq!(live.command_outcomes, restored.command_outcomes, "the same answers");
}

pub fn after_step(before: &Store, world: &World, inputs: &[Input], decision: &Decision) {
    events_are_gapless(world);
    rows_are_whole(world);
    answers_are_true(inputs, decision);
    one_live_attempt_a_node(world);
    claims_are_kept_while_anything_runs(before, world);
    ends_are_true(world);
    prospects::only_gates_that_matter_wait(world, decision);
    for effect in &decision.effects {
        match &effect.kind {
            EffectKind::SubmitAttempt { spec } => {
                may_start(world, decision, &spec.plan_node_id);
                assert_eq!(world.store.attempts[&spec.attempt_id].result, None);
            }
            EffectKind::SendResourceUpdate { command } => {
                let update = &world.store.updates[&command.command_id];
                if update.rebases == 0 {
                    may_start(world, decision, &update.node);
                } else {
                    goes_on(before, &update.node);
                }
                provided_capabilities_are_proven(command);
            }
            _ => {}
        }
    }
}

fn events_are_gapless(world: &World) {
    let operation = world.store.operation.as_ref().unwrap();
    assert_eq!(operation.last_event, world.events.len() as u64);
    for (ix, event) in world.events.iter().enumerate().rev().take(50) {
        assert_eq!(event.sequence, ix as u64 + 1);
    }
    let status = world.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::StatusChanged { to, .. } => Some(*to),
        _ => None,
    });
    assert_eq!(status.unwrap_or(OperationStatus::Pending), operation.status);
}

/// What the store was told is what the state is.
fn rows_are_whole(world: &World) {
    let rows = world.state.rows();
    assert_eq!(Some(&rows.operation), world.store.operation.as_ref());
    assert_eq!(rows.runs, world.store.runs.values().cloned().collect::<Vec<_>>());
    for row in &rows.node_runs {
        assert_eq!(world.store.latest().get(row.node.as_str()), Some(&row));
    }
    for attempt in &rows.attempts {
        assert_eq!(Some(attempt), world.store.attempts.get(&attempt.id));
    }
    for gate in &rows.gates {
        assert_eq!(Some(gate), world.store.gates.get(&gate.id));
    }
    assert_eq!(rows.gates.len(), world.store.gates.len());
    assert_eq!(rows.bindings.len(), world.store.bindings.len());
    for binding in &rows.bindings {
        assert_eq!(
            Some(binding),
            world.store.bindings.get(&(binding.uid, binding.slot.clone()))
        );
    }
    let sent = world
        .store
        .updates
        .values()
        .filter(|update| update.state == UpdateState::Sent);
    assert_eq!(rows.updates, sent.cloned().collect::<Vec<_>>());
}

/// No accepted command is a no-op, no refused one changes anything.
fn answers_are_true(inputs: &[Input], decision: &Decision) {
    let commands = inputs.iter().filter(|input| matches!(input, Input::Command(_))).count();
    assert_eq!(decision.command_outcomes.len(), commands, "every command is answered");
    let fresh = decision.changes.iter().filter_map(|change| match change {
        Change::Command(row) => Some(&row.outcome.answer),
        _ => None,
    });
    let accepted = fresh
        .filter(|answer| matches!(answer, CommandAnswer::Accepted { .. }))
        .count();
    let told = decision
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::CommandAccepted { .. }));
    assert_eq!(
        told.count(),
        accepted,
        "the audit has what was accepted and nothing else"
    );
    if commands == inputs.len() && commands > 0 {
        let others = decision
            .changes
            .iter()
            .filter(|change| !matches!(change, Change::Command(_)))
            .count();
        if accepted > 0 {
            assert!(others > 0, "an accepted command changes something");
        }
    }
}

fn open_attempts(world: &World) -> BTreeMap<&str, Vec<AttemptId>> {
    let mut open: BTreeMap<&str, Vec<AttemptId>> = BTreeMap::new();
    for attempt in world
        .store
        .attempts
        .values()
        .filter(|attempt| attempt.ended_at.is_none())
    {
        open.entry(&attempt.node).or_default().push(attempt.id);
    }
    open
}

fn one_live_attempt_a_node(world: &World) {
    let latest = world.store.latest();
    for (node, attempts) in open_attempts(world) {
        let row = latest[node];
        // What was declared unresolved and settled by hand is nobody's any more; its result may yet come.
        let owned: Vec<_> = attempts
            .iter()
            .filter(|id| row.attempt == Some(**id) && !row.state.is_end())
            .collect();
        assert!(owned.len() <= 1, "{node} has {owned:?}");
        if row.state.is_live() {
            let by_attempt = owned.len() == 1;
            let by_update = row
                .update
                .is_some_and(|id| world.store.updates[&id].state == UpdateState::Sent);
            assert!(
                by_attempt || by_update,
                "{node} is {} and nothing of it runs",
                row.state
            );
        }
    }
}

fn unsettled(rows: &BTreeMap<&str, &NodeRunRow>) -> bool {
    rows.values()
        .any(|row| row.state.is_live() || row.state == NodeState::Unresolved)
}

fn claims_are_kept_while_anything_runs(before: &Store, world: &World) {
    let operation = world.store.operation.as_ref().unwrap();
    let needed = !world.state.plan().plan().claims.is_empty();
    if needed && unsettled(&world.store.latest()) && world.store.runs[&operation.run].end.is_none() {
        assert!(world.store.holds_claims(), "something may still run without its claims");
    }
    if before.claims.is_some() && world.store.claims.is_none() {
        assert!(
            !unsettled(&world.store.latest()),
            "claims let go while something may still run"
        );
    }
    if operation.status.is_end() {
        assert_eq!(world.store.claims, None, "no claim outlives the run");
    }
}

fn ends_are_true(world: &World) {
    let operation = world.store.operation.as_ref().unwrap();
    let run = &world.store.runs[&operation.run];
    assert_eq!(run.end.is_some(), operation.status.is_end());
    let Some(end) = run.end else { return };
    let latest = world.store.latest();
    let plan = world.state.plan().plan();
    let rows: Vec<&&NodeRunRow> = plan.nodes.iter().map(|node| &latest[node.id.as_str()]).collect();
    assert!(
        rows.iter().all(|row| row.state.is_end()),
        "a run ends with all its nodes"
    );
    let open = world.store.gates.values().filter(|gate| gate.state == GateState::Open);
    assert_eq!(open.count(), 0, "a gate outlives its run");
    let forgone = forgone(plan, &latest);
    let by_itself = |id: &&&str| latest[**id].reason == Some(NodeReason::Operator);
    let is_join = |id: &&&str| matches!(plan.node(id).unwrap().action, NodeKind::Join);
    let left_out = forgone.iter().find(|id| !by_itself(id) && !is_join(id));
    let progress = &operation.progress;
    let nothing_failed = !rows.iter().any(|row| bad(row.state)) && progress.stopped_by.is_none();
    let only_left_out = matches!(progress.failure, Some(RunFailure::LeftOut(_)));
    if end == RunEnd::Failed && nothing_failed && (progress.failure.is_none() || only_left_out) {
        assert!(
            left_out.is_some(),
            "a failed run in which nothing failed and nothing was left out"
        );
    }
    if end == RunEnd::Succeeded {
        assert_eq!(
            left_out, None,
            "a green run in which a node did not start for want of a skipped one"
        );
        let well = |row: &&&&NodeRunRow| matches!(row.state, NodeState::Succeeded | NodeState::Skipped);
        assert_eq!(
            rows.iter().filter(well).count(),
            rows.len(),
            "a green run with a node that failed"
        );
        let told = |reason| rows.iter().any(|row| row.reason == Some(reason));
        assert!(!told(NodeReason::NotStarted) && !told(NodeReason::LaneStopped));
    }
    assert_eq!(world.state.next_wakeup(), None);
}

const fn bad(state: NodeState) -> bool {
    matches!(state, NodeState::Failed | NodeState::TimedOut | NodeState::Cancelled)
}

/// Nodes that did not run because an operator skipped them, or what they need the success of.
fn forgone<'p>(plan: &'p Plan, latest: &BTreeMap<&str, &NodeRunRow>) -> BTreeSet<&'p str> {
    let mut forgone = BTreeSet::new();
    for node in &plan.nodes {
        let row = latest[node.id.as_str()];
        let is_item = |need: &&Need| {
            let needed = plan.node(&need.node).unwrap();
            needed.item.is_some() && needed.template_node == node.template_node
        };
        let so = match (&node.action, row.reason) {
            _ if row.state != NodeState::Skipped => false,
            (NodeKind::Join, _) => node
                .needs
                .iter()
                .filter(is_item)
                .any(|item| forgone.contains(item.node.as_str())),
            (_, Some(NodeReason::Operator)) => true,
            (_, Some(NodeReason::NeedsNotMet | NodeReason::GateClosed)) => {
                !node.skipped && wants_only(plan, node, &forgone, latest)
            }
            _ => false,
        };
        if so {
            forgone.insert(node.id.as_str());
        }
    }
    forgone
}

/// Whether nothing but the success of what is `forgone` stood in the way of `node`.
fn wants_only(plan: &Plan, node: &PlanNode, forgone: &BTreeSet<&str>, latest: &BTreeMap<&str, &NodeRunRow>) -> bool {
    let stops = |need: &&Need| {
        let row = latest[need.node.as_str()];
        let accepted = accept_of(row.state, row.reason).is_some_and(|end| need.accept.contains(&end));
        let is_gate = matches!(plan.node(&need.node).unwrap().action, NodeKind::Gate(_));
        let shut = is_gate || row.reason == Some(NodeReason::GateClosed);
        // A gate that was withdrawn, because nothing behind it could start, stood in nobody's way.
        let withdrawn = row.reason == Some(NodeReason::NothingBehind);
        !withdrawn && (!accepted || (shut && forgone.contains(need.node.as_str())))
    };
    let mut stopping = node.needs.iter().filter(stops).peekable();
    let wanted = |need: &Need| forgone.contains(need.node.as_str()) && need.accept.contains(&Accept::Succeeded);
    stopping.peek().is_some() && stopping.all(wanted)
}

/// Whether `node` may be handed to the world now.
fn may_start(world: &World, decision: &Decision, node: &str) {
    let operation = world.store.operation.as_ref().unwrap();
    let progress = &operation.progress;
    assert!(!progress.paused, "{node} started during a pause");
    assert!(progress.cancel.is_none(), "{node} started after a cancel");
    assert_eq!(progress.failure, None, "{node} started in a run that failed as a whole");
    if let Some(stopper) = &progress.stopped_by {
        // What fails without leaving the domain may stop the run after others started in the same decision.
        let started = position(decision, |kind| match kind {
            EventKind::AttemptSubmitted { node: of, .. } | EventKind::UpdateSent { node: of, .. } => of == node,
            _ => false,
        });
        let stopped = position(
            decision,
            |kind| matches!(kind, EventKind::NodeChanged { node: of, to, .. } if of == stopper && to.is_end()),
        );
        assert!(started < stopped, "{node} started after {stopper} failed");
    }
    assert!(progress.begun);
    let plan = world.state.plan();
    if !plan.plan().claims.is_empty() {
        assert!(world.store.holds_claims(), "{node} started without claims");
    }
    let latest = world.store.latest();
    let definition = plan.plan().node(node).unwrap();
    for need in &definition.needs {
        let row = latest[need.node.as_str()];
        let end = accept_of(row.state, row.reason);
        assert!(
            end.is_some_and(|end| need.accept.contains(&end)),
            "{node} started while its need {} is {}",
            need.node,
            row.state
        );
    }
    for (gate, guarded) in &world.covered[&operation.plan_revision].0 {
        if guarded.contains(node) {
            let row = latest[gate.as_str()];
            let not_needed = row.state == NodeState::Skipped && row.reason == Some(NodeReason::Condition);
            let digest = plan.gate_digest(gate);
            let passed = world.store.gates.values().any(|asking| {
                asking.node == *gate && asking.state == GateState::Passed && Some(asking.digest) == digest
            });
            assert!(passed || not_needed, "{node} started behind the closed gate {gate}");
        }
    }
    lanes_hold(world, node, &latest);
}

/// A rebase starts nothing: it carries on what was sent, so a pause does not hold it up.
fn goes_on(before: &Store, node: &str) {
    let row = before.latest()[node];
    assert!(row.state.is_live(), "{node} was rebased and did not run");
}

fn position(decision: &Decision, wanted: impl Fn(&EventKind) -> bool) -> Option<usize> {
    decision.events.iter().position(|event| wanted(&event.kind))
}

fn lanes_hold(world: &World, node: &str, latest: &BTreeMap<&str, &NodeRunRow>) {
    let operation = world.store.operation.as_ref().unwrap();
    let plan = world.state.plan().plan();
    for lane in &plan.lanes {
        if !lane
            .items
            .iter()
            .any(|item| item.nodes.iter().any(|member| member == node))
        {
            continue;
        }
        let of_run = |id: &String| latest[id.as_str()].run == operation.run;
        let started = |id: &&String| of_run(id) && latest[id.as_str()].started_at.is_some();
        let open = lane.items.iter().filter(|item| {
            item.nodes.iter().any(|id| started(&id)) && item.nodes.iter().any(|id| !latest[id.as_str()].state.is_end())
        });
        assert!(
            open.count() <= lane.max_parallel as usize,
            "lane {} has too many open items",
            lane.id
        );
    }
}

fn provided_capabilities_are_proven(command: &contracts::ResourceUpdateCommand) {
    for capability in command
        .changes
        .provided_capabilities
        .iter()
        .flat_map(|provided| &provided.add)
    {
        let proof = |evidence: &&contracts::EvidenceRef| {
            evidence.capability == *capability
                && evidence.result == contracts::EvidenceResult::Passed
                && evidence
                    .resource_id
                    .as_ref()
                    .is_none_or(|id| *id == command.resource_id)
        };
        assert!(
            command.evidence.iter().any(|evidence| proof(&evidence)),
            "{capability} is unproven"
        );
    }
}
