//! Gates as their deciders see them: what a decision binds to, and whom and what it lets act.

use std::collections::BTreeSet;

use control_plane_api::{GateState, GateTarget, GateView};
use control_plane_operation::row::{GateRow, NodeRunRow};
use control_plane_operation::{GateState as Standing, NodeReason, PlanIndex};
use control_plane_plan::{Advice, Gate, NodeKind, Plan, PlanNode, covered_by};
use kernel::id::{PlanId, ResourceUid};

/// What is the same for all gates of an operation.
pub struct Context<'a> {
    pub plan: &'a PlanIndex,
    pub plan_id: PlanId,
    pub requester: &'a str,
    pub is_over: bool,
    pub advice: Option<&'a Advice>,
    /// Each gate node's last row.
    pub nodes: &'a [NodeRunRow],
    /// Who looks: subject, and whether a role is held.
    pub subject: &'a str,
    pub has_role: &'a (dyn Fn(&str) -> bool + Sync),
}

/// Every gate of the plan in force, each in its last asking, in plan order.
pub fn views(context: &Context<'_>, askings: &[GateRow]) -> Vec<GateView> {
    let plan = context.plan.document().plan();
    plan.nodes
        .iter()
        .filter_map(|node| match &node.action {
            NodeKind::Gate(gate) => Some((node, gate)),
            _ => None,
        })
        .map(|(node, gate)| {
            let asked = askings.iter().rfind(|asking| asking.node == node.id);
            view(context, plan, node, gate, asked)
        })
        .collect()
}

fn view(context: &Context<'_>, plan: &Plan, node: &PlanNode, gate: &Gate, asked: Option<&GateRow>) -> GateView {
    let covers = covered_by(plan, &node.id);
    let digest = context.plan.gate_digest(&node.id);
    let excluded = asked.is_some_and(|asked| asked.excluded.iter().any(|subject| subject == context.subject));
    let is_open = asked.is_some_and(|asked| asked.state == Standing::Open) && !context.is_over;
    GateView {
        gate_id: asked.map(|asked| asked.id.0),
        node_id: node.id.clone(),
        run: asked.map(|asked| asked.run),
        state: standing(context, node, asked),
        message: gate.message.clone(),
        role: gate.role.clone(),
        requester_excluded: gate.requester_excluded,
        requested_by: context.requester.to_owned(),
        claims: gate.claims,
        opened_at: asked.map(|asked| asked.opened_at),
        expires_at: asked.and_then(|asked| asked.expires_at),
        decided_at: asked.and_then(|asked| asked.decided_at),
        decided_by: asked.and_then(|asked| asked.decided_by.clone()),
        comment: asked.and_then(|asked| asked.comment.clone()),
        covers_digest: asked
            .map(|asked| asked.digest)
            .or(digest)
            .unwrap_or(context.plan.document().digest()),
        plan_id: context.plan_id,
        plan_digest: context.plan.document().digest(),
        plan_revision: context.plan.revision(),
        targets: targets(plan, &covers),
        destructive: plan
            .destructive
            .iter()
            .filter(|id| covers.contains(*id))
            .cloned()
            .collect(),
        covers: plan
            .nodes
            .iter()
            .map(|node| &node.id)
            .filter(|id| covers.contains(*id))
            .cloned()
            .collect(),
        blast_radius: context.advice.map(|advice| advice.blast_radius.clone()),
        risk: context.advice.map(|advice| advice.risk.clone()).unwrap_or_default(),
        may_decide: is_open && !excluded && (context.has_role)(&gate.role),
    }
}

/// As its last asking stands. A gate that has ended in a later run than that, or without any, was not asked.
fn standing(context: &Context<'_>, node: &PlanNode, asked: Option<&GateRow>) -> GateState {
    let row = context.nodes.iter().find(|row| row.node == node.id);
    let unasked = row.filter(|row| row.state.is_end() && asked.is_none_or(|asked| asked.run < row.run));
    match (unasked, asked) {
        (Some(row), _) if row.reason == Some(NodeReason::NothingBehind) => GateState::Withdrawn,
        (Some(_), _) => GateState::NotAsked,
        (None, Some(asked)) => state(asked.state),
        (None, None) => GateState::Pending,
    }
}

const fn state(standing: Standing) -> GateState {
    match standing {
        Standing::Open => GateState::Open,
        Standing::Passed => GateState::Passed,
        Standing::Rejected => GateState::Rejected,
        Standing::Expired => GateState::Expired,
        Standing::Closed => GateState::Closed,
        Standing::Withdrawn => GateState::Withdrawn,
        Standing::Void => GateState::Void,
    }
}

fn targets(plan: &Plan, covers: &BTreeSet<String>) -> Vec<GateTarget> {
    let mut acted_on: BTreeSet<ResourceUid> = BTreeSet::new();
    for node in plan.nodes.iter().filter(|node| covers.contains(&node.id)) {
        match &node.action {
            NodeKind::Job(job) => acted_on.extend(&job.targets),
            NodeKind::ResourceUpdate(update) => drop(acted_on.insert(update.uid)),
            NodeKind::Gate(_) | NodeKind::Join => {}
        }
    }
    let bound = plan.slots.iter().flat_map(|slot| &slot.resources);
    let mut seen = BTreeSet::new();
    bound
        .filter(|resource| acted_on.contains(&resource.uid) && seen.insert(resource.uid))
        .map(|resource| GateTarget {
            resource_id: resource.resource_id.clone(),
            uid: resource.uid,
            resource_type: resource.resource_type.clone(),
        })
        .collect()
}
