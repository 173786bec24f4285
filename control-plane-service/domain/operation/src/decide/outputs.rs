//! What expressions see: the ends and outputs of the nodes before the looking one, and of no others, so
//! that their value does not depend on which siblings happened to have ended.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Decider;
use crate::contract::failure;
use crate::index::NodeIx;
use crate::row::{Failure, NodeRunRow};
use crate::state::OperationState;
use crate::{NodeOutputs, NodeReason, NodeState};
use control_plane_plan::NodeKind;

struct View<'a> {
    state: &'a OperationState,
    ix: NodeIx,
    before: BTreeSet<NodeIx>,
}

impl<'a> View<'a> {
    fn new(state: &'a OperationState, ix: NodeIx) -> Self {
        let mut before = BTreeSet::new();
        let mut open = vec![ix];
        while let Some(at) = open.pop() {
            for need in &state.plan.edges(at).needs {
                if before.insert(need.node) {
                    open.push(need.node);
                }
            }
        }
        Self { state, ix, before }
    }

    fn before(&self, id: &str) -> Option<NodeIx> {
        self.state.plan.position(id).filter(|ix| self.before.contains(ix))
    }

    fn join(&self, ix: NodeIx) -> Value {
        let mut items = Map::new();
        for item in &self.state.plan.edges(ix).items {
            if let Some(element) = &self.state.plan.node(*item).item {
                items.insert(element.key.clone(), told(&self.state.cells[*item].row));
            }
        }
        let mut value = told(&self.state.cells[ix].row);
        value["items"] = Value::Object(items);
        value
    }
}

impl NodeOutputs for View<'_> {
    fn output(&self, template_node: &str) -> Option<Value> {
        if let Some(item) = &self.state.plan.node(self.ix).item
            && let Some(ix) = self.before(&format!("{template_node}[{}]", item.key))
        {
            return Some(told(&self.state.cells[ix].row));
        }
        let ix = self.before(template_node)?;
        Some(match self.state.plan.node(ix).action {
            NodeKind::Join => self.join(ix),
            _ => told(&self.state.cells[ix].row),
        })
    }

    fn item(&self) -> Option<Value> {
        let item = self.state.plan.node(self.ix).item.as_ref()?;
        let mut told = json!({"index": item.index, "key": item.key});
        if let Some(value) = &item.value {
            told["value"] = value.clone();
        }
        Some(told)
    }

    fn parameters(&self) -> &Map<String, Value> {
        &self.state.plan.plan().parameters
    }

    fn names(&self) -> Vec<String> {
        let names = self
            .before
            .iter()
            .map(|ix| self.state.plan.node(*ix).template_node.clone());
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn told(row: &NodeRunRow) -> Value {
    let mut value = json!({
        "status": row.state.as_str(),
        "outputs": row.outputs.clone().unwrap_or_default(),
        "artifacts": artifacts(row),
        "evidence": evidence(row),
    });
    if let Some(reason) = row.reason {
        value["reason"] = json!(reason.as_str());
    }
    if let Some(message) = &row.message {
        value["message"] = json!(message);
    }
    if let Some(exit) = &row.exit {
        value["exit"] = json!(exit);
    }
    value
}

fn artifacts(row: &NodeRunRow) -> Map<String, Value> {
    let mut named = Map::new();
    for artifact in &row.artifacts {
        if let Some(name) = &artifact.name {
            let mut told = json!({"uri": artifact.uri, "type": artifact.artifact_type});
            if let Some(sha256) = artifact.sha256 {
                told["sha256"] = json!(sha256);
            }
            named.insert(name.clone(), told);
        }
    }
    named
}

fn evidence(row: &NodeRunRow) -> Map<String, Value> {
    let mut named = Map::new();
    for evidence in &row.evidence {
        if let Some(name) = &evidence.name {
            named.insert(name.clone(), json!(evidence.result));
        }
    }
    named
}

impl Decider<'_> {
    pub(super) fn condition(&self, ix: NodeIx, when: Option<&str>) -> Result<bool, Failure> {
        let Some(when) = when else { return Ok(true) };
        match self.expressions.evaluate(when, &View::new(&self.state, ix)) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(unusable(format!("the condition {when} is {other}, not true or false"))),
            Err(error) => Err(unusable(format!("the condition {when} cannot be decided: {error}"))),
        }
    }

    /// `value` with the deferred places filled.
    pub(super) fn filled(
        &self,
        ix: NodeIx,
        mut value: Value,
        deferred: &BTreeMap<String, String>,
    ) -> Result<Value, Failure> {
        if deferred.is_empty() {
            return Ok(value);
        }
        let view = View::new(&self.state, ix);
        for (pointer, expression) in deferred {
            let computed = self.expressions.evaluate(expression, &view);
            let computed =
                computed.map_err(|error| unusable(format!("the input at {pointer} has no value: {error}")))?;
            match value.pointer_mut(pointer) {
                Some(place) => *place = computed,
                None => return Err(unusable(format!("there is no input at {pointer}"))),
            }
        }
        Ok(value)
    }
}

pub(super) const fn unusable(message: String) -> Failure {
    failure(NodeState::Failed, NodeReason::Expression, message)
}
