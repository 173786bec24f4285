//! From template nodes to the nodes of a plan: fan-outs become item nodes and a join, conditions that
//! can be decided are decided, needs become edges between plan nodes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use control_plane_plan::{Accept, Gate, GateClaims, GateExpiry, Need, NodeKind, PlanNode};
use control_plane_scenario::Template;
use control_plane_scenario::dynamic::{Deferred, Dynamic, NODES, as_text};
use control_plane_scenario::expression::Scope;
use control_plane_scenario::template::{Action, GateTemplate, NodeSpec, UpdateTemplate};

use crate::fan_out::{Element, elements};
use crate::job::{self, Site};
use crate::update::update;
use crate::{Bound, PlanningError};

/// Most nodes of a plan.
pub const MAX_NODES: usize = 50_000;

const EVERY_END: [Accept; 6] = [
    Accept::Succeeded,
    Accept::Failed,
    Accept::TimedOut,
    Accept::Skipped,
    Accept::Cancelled,
    Accept::Lost,
];

/// Expands one template.
pub(crate) struct Expander<'a, 'c> {
    pub(crate) template: &'a Template,
    pub(crate) bindings: &'a BTreeMap<String, Bound<'c>>,
    /// `parameters`, `environment` and `slots`.
    pub(crate) scope: &'a Scope<'a>,
    /// Of every fan-out, the keys of its items in order.
    items: HashMap<&'a str, Vec<String>>,
    /// Template nodes behind which something has been changed.
    mutated: BTreeSet<&'a str>,
    nodes: Vec<PlanNode>,
}

/// The id of an item's node.
pub(crate) fn item_id(node: &str, key: &str) -> String {
    format!("{node}[{key}]")
}

impl<'a, 'c> Expander<'a, 'c> {
    pub(crate) fn new(template: &'a Template, bindings: &'a BTreeMap<String, Bound<'c>>, scope: &'a Scope<'a>) -> Self {
        Self {
            template,
            bindings,
            scope,
            items: HashMap::new(),
            mutated: BTreeSet::new(),
            nodes: Vec::new(),
        }
    }

    /// All nodes, in no particular order.
    pub(crate) fn expand(mut self) -> Result<Vec<PlanNode>, PlanningError> {
        for spec in &self.template.nodes {
            self.note_mutation(spec);
            let Some(for_each) = &spec.for_each else {
                let node = self.node(spec, None)?;
                self.push(node)?;
                continue;
            };
            let elements = elements(&for_each.over, self.bindings, self.scope, &spec.id)?;
            let keys: Vec<String> = elements.iter().map(|e| e.item.key.clone()).collect();
            self.items.insert(&spec.id, keys);
            for element in &elements {
                let node = self.node(spec, Some(element))?;
                self.push(node)?;
            }
            let join = join(spec, &elements);
            self.push(join)?;
        }
        Ok(self.nodes)
    }

    fn push(&mut self, node: PlanNode) -> Result<(), PlanningError> {
        if self.nodes.len() >= MAX_NODES {
            return Err(PlanningError::TooLarge {
                limit: MAX_NODES,
                what: "nodes",
            });
        }
        self.nodes.push(node);
        Ok(())
    }

    /// Template nodes come in topological order, so what a node needs has been noted before it.
    fn note_mutation(&mut self, spec: &'a NodeSpec) {
        let itself = match &spec.action {
            Action::Job(job) => job.mutating,
            Action::ResourceUpdate(_) => true,
            Action::Gate(_) => false,
        };
        if itself || self.is_behind_mutation(spec) {
            self.mutated.insert(&spec.id);
        }
    }

    fn is_behind_mutation(&self, spec: &NodeSpec) -> bool {
        spec.needs.iter().any(|need| self.mutated.contains(need.node.as_str()))
    }

    fn node(&self, spec: &'a NodeSpec, element: Option<&Element<'c>>) -> Result<PlanNode, PlanningError> {
        let id = element.map_or_else(|| spec.id.clone(), |e| item_id(&spec.id, &e.item.key));
        let inner = element.map(|element| self.scope.with("item", &element.seen));
        let scope = inner.as_ref().unwrap_or(self.scope);
        let site = Site {
            template: self.template,
            bindings: self.bindings,
            node: &id,
            element,
            scope,
        };
        let (when, mut skipped) = condition(spec, &site)?;
        if let Action::Job(job) = &spec.action {
            skipped |= job::acts_on_nothing(job, &site);
        }
        let action = match &spec.action {
            Action::Job(job) => NodeKind::Job(job::job(job, &site, skipped)?),
            Action::Gate(gate) => NodeKind::Gate(self.gate(gate, spec, &site)?),
            Action::ResourceUpdate(template) => {
                let evidence = self.evidence_from(template, spec, element);
                NodeKind::ResourceUpdate(update(template, &site, evidence, skipped)?)
            }
        };
        Ok(PlanNode {
            title: title(spec.title.as_ref(), &site)?,
            template_node: spec.id.clone(),
            item: element.map(|element| element.item.clone()),
            lane: element.and_then(|_| lane_of(spec)),
            needs: self.needs(spec, element),
            when,
            skipped,
            on_failure: spec.on_failure,
            destructive: spec.destructive,
            action,
            id,
        })
    }

    /// Item by item where the template says so, else on the node or the fan-out as a whole.
    fn needs(&self, spec: &NodeSpec, element: Option<&Element<'c>>) -> Vec<Need> {
        let mut needs: Vec<Need> = Vec::with_capacity(spec.needs.len());
        for need in &spec.needs {
            let node = match element {
                Some(element) if need.each_same => item_id(&need.node, &element.item.key),
                _ => need.node.clone(),
            };
            match needs.iter_mut().find(|other| other.node == node) {
                // Needed twice: only what both accept will do.
                Some(other) => other.accept.retain(|end| need.accept.contains(end)),
                None => needs.push(Need {
                    node,
                    accept: need.accept.clone(),
                }),
            }
        }
        needs.sort_by(|a, b| a.node.cmp(&b.node));
        needs
    }

    /// Of a fan-out over the same thing only this item's node, of any other all of its items' nodes.
    fn evidence_from(&self, update: &UpdateTemplate, spec: &NodeSpec, element: Option<&Element<'c>>) -> Vec<String> {
        let over = spec.for_each.as_ref().map(|f| &f.over);
        let mut nodes = Vec::new();
        for source in &update.evidence_from {
            let fans_out = self.template.node(source).and_then(|node| node.for_each.as_ref());
            match (fans_out, element) {
                (None, _) => nodes.push(source.clone()),
                (Some(for_each), Some(element)) if Some(&for_each.over) == over => {
                    nodes.push(item_id(source, &element.item.key));
                }
                (Some(_), _) => {
                    let keys = self.items.get(source.as_str()).into_iter().flatten();
                    nodes.extend(keys.map(|key| item_id(source, key)));
                }
            }
        }
        nodes
    }

    fn gate(&self, gate: &GateTemplate, spec: &NodeSpec, site: &Site<'_, '_>) -> Result<Gate, PlanningError> {
        let by_default = if self.is_behind_mutation(spec) {
            GateClaims::Hold
        } else {
            GateClaims::Release
        };
        Ok(Gate {
            role: gate.role.clone(),
            requester_excluded: gate.requester_excluded,
            expires_after_seconds: gate.expires_after_seconds,
            on_expiry: GateExpiry::Deny,
            claims: gate.claims.unwrap_or(by_default),
            message: title(gate.message.as_ref(), site)?,
        })
    }
}

/// Decided now where it can be, else kept for later.
fn condition(spec: &NodeSpec, site: &Site<'_, '_>) -> Result<(Option<String>, bool), PlanningError> {
    match &spec.when {
        None => Ok((None, false)),
        Some(when) if when.reads(NODES) => Ok((Some(when.source().to_owned()), false)),
        Some(when) => {
            let holds = when.holds(site.scope).map_err(|error| site.failed(&error))?;
            Ok((None, !holds))
        }
    }
}

fn title(dynamic: Option<&Dynamic>, site: &Site<'_, '_>) -> Result<String, PlanningError> {
    let Some(dynamic) = dynamic else {
        return Ok(String::new());
    };
    let value = dynamic
        .resolve(site.scope, &mut Deferred::new())
        .map_err(|error| site.failed(&error))?;
    Ok(as_text(&value))
}

/// The lane that item nodes run in: a named one, or one of its own when the fan-out has limits.
pub(crate) fn lane_of(spec: &NodeSpec) -> Option<String> {
    let for_each = spec.for_each.as_ref()?;
    let limited = for_each.max_parallel.is_some() || for_each.max_failures.is_some();
    for_each.lane.clone().or_else(|| limited.then(|| spec.id.clone()))
}

fn join(spec: &NodeSpec, elements: &[Element<'_>]) -> PlanNode {
    PlanNode {
        id: spec.id.clone(),
        template_node: spec.id.clone(),
        item: None,
        lane: None,
        title: String::new(),
        needs: elements
            .iter()
            .map(|element| Need {
                node: item_id(&spec.id, &element.item.key),
                accept: EVERY_END.to_vec(),
            })
            .collect(),
        when: None,
        skipped: false,
        on_failure: spec.on_failure,
        destructive: false,
        action: NodeKind::Join,
    }
}
