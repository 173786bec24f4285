//! Nodes, lanes and fan-outs.

use std::collections::BTreeSet;

use control_plane_plan::{Accept, OnFailure};
use kernel::DottedName;

use super::scope::{NodeReferences, Place, check, check_dynamic};
use super::{Known, action, check_name, job, texts};
use crate::fault::{FaultCode, Faults, suggestion};
use crate::reader::{Fields, Placed, choice, text};
use crate::template::{Action, ForEach, LaneSpec, NeedSpec, NodeSpec, Over};
use crate::yaml::{Content, Key, Node};

const ACCEPTED: [(&str, Accept); 6] = [
    ("succeeded", Accept::Succeeded),
    ("failed", Accept::Failed),
    ("timed_out", Accept::TimedOut),
    ("skipped", Accept::Skipped),
    ("cancelled", Accept::Cancelled),
    ("lost", Accept::Lost),
];
const MAX_PARALLEL: u32 = 10_000;

/// What the parts of a node need to know of the node.
pub(super) struct Here<'a> {
    pub(super) id: &'a str,
    pub(super) for_each: Option<&'a ForEach>,
    /// It has a `for_each`, and that has faults of its own: what follows from it is not judged.
    pub(super) faulty_for_each: bool,
    pub(super) known: &'a Known<'a>,
    pub(super) faults: &'a Faults,
}

impl Here<'_> {
    /// Where the node's values stand: everything is in scope.
    pub(super) const fn place(&self) -> Place<'_> {
        Place {
            variables: &["slots", "nodes"],
            for_each: self.for_each,
            unknown_item: self.faulty_for_each,
        }
    }

    /// Whether the node runs once for each resource of a slot.
    pub(super) fn slot_of_item(&self) -> Option<&str> {
        match self.for_each.map(|f| &f.over) {
            Some(Over::Slot(slot)) => Some(slot),
            _ => None,
        }
    }
}

/// The ids of all nodes, each once.
pub(super) fn ids(nodes: &[Node], faults: &Faults) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for node in nodes {
        let Content::Map(fields) = &node.content else { continue };
        let Some((_, id)) = fields.iter().find(|(key, _)| key.name == "id") else {
            continue;
        };
        let Content::Text(id_text) = &id.content else { continue };
        if !ids.insert(id_text.clone()) {
            faults.add(
                id.at,
                FaultCode::DuplicateName,
                format!("two nodes are called `{id_text}`"),
                "give each node an id of its own",
            );
        }
    }
    ids
}

pub(super) fn lane(key: &Key, node: &Node, known: &Known<'_>, faults: &Faults) -> Option<LaneSpec> {
    let name = Placed {
        at: key.at,
        value: key.name.clone(),
    };
    check_name(&name, "lane", faults);
    let mut fields = Fields::open(node, "lane", faults)?;
    let over = over(&mut fields, known);
    let max_parallel = fields.integer("max_parallel", 1, MAX_PARALLEL).unwrap_or(1);
    let max_failures = fields.integer("max_failures", 0, MAX_PARALLEL).unwrap_or(0);
    fields.finish();
    Some(LaneSpec {
        over: over?,
        max_parallel,
        max_failures,
    })
}

fn over(fields: &mut Fields<'_, '_>, known: &Known<'_>) -> Option<Over> {
    let faults = fields.faults();
    let slot = fields.text("slot");
    let list = fields.dynamic("list");
    match (slot, list) {
        (Some(slot), None) => known.slot(&slot, faults).map(|_| Over::Slot(slot.value.clone())),
        (None, Some(list)) => {
            check_dynamic(&list.value, list.at, Place::LIST, known, faults);
            Some(Over::List(list.value))
        }
        _ => {
            faults.add(
                fields.at,
                FaultCode::MissingField,
                "exactly one of `slot` and `list` is expected",
                "say what it runs over",
            );
            None
        }
    }
}

fn for_each(node: &Node, known: &Known<'_>, faults: &Faults) -> Option<ForEach> {
    let mut fields = Fields::open(node, "for_each", faults)?;
    let lane = fields.text("lane");
    let max_parallel = fields.integer("max_parallel", 1, MAX_PARALLEL);
    let max_failures = fields.integer("max_failures", 0, MAX_PARALLEL);
    let Some(name) = lane else {
        let over = over(&mut fields, known);
        fields.finish();
        return Some(ForEach {
            over: over?,
            lane: None,
            max_parallel,
            max_failures,
        });
    };
    // A lane says what it runs over; a fan-out in it may repeat that, not change it.
    let stated = (fields.node("slot").is_some() || fields.node("list").is_some())
        .then(|| over(&mut fields, known))
        .flatten();
    fields.finish();
    if max_parallel.is_some() || max_failures.is_some() {
        faults.add(
            node.at,
            FaultCode::InvalidValue,
            "`max_parallel` and `max_failures` of a fan-out in a lane are the lane's",
            "state them in the lane",
        );
    }
    if !known.declared.lanes.contains(&name.value) {
        faults.add(
            name.at,
            FaultCode::UnknownLane,
            format!("there is no lane `{}`", name.value),
            suggestion(&name.value, known.declared.lanes.iter().map(String::as_str)),
        );
    }
    let lane = known.lanes.get(&name.value)?;
    if stated.is_some_and(|stated| stated != lane.over) {
        faults.add(
            node.at,
            FaultCode::InvalidValue,
            format!("the lane `{}` runs over something else", name.value),
            "leave `slot` and `list` to the lane",
        );
    }
    Some(ForEach {
        over: lane.over.clone(),
        lane: Some(name.value),
        max_parallel: None,
        max_failures: None,
    })
}

pub(super) fn read(
    node: &Node,
    known: &Known<'_>,
    references: &mut NodeReferences,
    faults: &Faults,
) -> Option<NodeSpec> {
    let mut fields = Fields::open(node, "node", faults)?;
    let id = fields.required_text("id");
    if let Some(id) = &id {
        check_name(id, "node's id", faults);
    }
    let id = id.map(|id| id.value);
    let fan_out = fields.node("for_each");
    let for_each = fan_out.and_then(|node| for_each(node, known, faults));
    let here = Here {
        id: id.as_deref().unwrap_or("?"),
        for_each: for_each.as_ref(),
        faulty_for_each: fan_out.is_some() && for_each.is_none(),
        known,
        faults,
    };
    let needs = fields
        .list("needs")
        .iter()
        .filter_map(|node| need(node, &here))
        .collect();
    let title = fields.dynamic("title").map(|found| {
        check_dynamic(
            &found.value,
            found.at,
            Place {
                variables: &["slots"],
                ..here.place()
            },
            known,
            faults,
        );
        found.value
    });
    let when = fields.expression("when").map(|found| {
        for read in check(&found.value, found.at, here.place(), known, faults) {
            references.0.push((here.id.to_owned(), read, found.at));
        }
        found.value
    });
    let choices = [
        ("fail", OnFailure::Fail),
        ("continue", OnFailure::Continue),
        ("hold", OnFailure::Hold),
    ];
    let on_failure = fields.choice("on_failure", &choices).unwrap_or_default();
    let destructive = fields.boolean("destructive").unwrap_or(false);
    let action = read_action(&mut fields, &here, references);
    fields.finish();
    Some(NodeSpec {
        id: id?,
        title,
        needs,
        when,
        for_each,
        on_failure,
        destructive,
        action: action?,
    })
}

fn read_action(fields: &mut Fields<'_, '_>, here: &Here<'_>, references: &mut NodeReferences) -> Option<Action> {
    let kind = fields.required_text("kind");
    let (job_node, gate_node, update_node) = (fields.node("job"), fields.node("gate"), fields.node("update"));
    let kind = kind?;
    let wanted = match kind.value.as_str() {
        "job" => "job",
        "gate" | "approval" => "gate",
        "resource_update" => "update",
        other => {
            here.faults.add(
                kind.at,
                FaultCode::InvalidValue,
                format!("there is no node of kind `{other}`"),
                suggestion(other, ["job", "gate", "approval", "resource_update"]),
            );
            return None;
        }
    };
    for (name, node) in [("job", job_node), ("gate", gate_node), ("update", update_node)] {
        match node {
            Some(node) if name != wanted => here.faults.add(
                node.at,
                FaultCode::UnknownField,
                format!("a node of kind `{}` has no `{name}`", kind.value),
                "remove it or change `kind`; a missing `- id:` above also reads like this",
            ),
            None if name == wanted => here.faults.add(
                fields.at,
                FaultCode::MissingField,
                format!("this node of kind `{}` has no `{name}`", kind.value),
                format!("add `{name}`; if it is there, its indentation hides it"),
            ),
            _ => {}
        }
    }
    if here.for_each.is_some() && wanted == "gate" {
        here.faults.add(
            fields.at,
            FaultCode::InvalidValue,
            "a gate cannot fan out",
            "remove `for_each`: one gate covers everything behind it",
        );
    }
    match wanted {
        "job" => job::read(job_node?, here, references).map(|job| Action::Job(Box::new(job))),
        "gate" => action::gate(gate_node?, here).map(Action::Gate),
        _ => action::update(update_node?, here, references).map(|update| Action::ResourceUpdate(Box::new(update))),
    }
}

fn need(node: &Node, here: &Here<'_>) -> Option<NeedSpec> {
    let faults = here.faults;
    if let Content::Text(_) = node.content {
        let needed = text(node, "needs", faults)?;
        return here.known.has_node(&needed, faults).then_some(NeedSpec {
            node: needed.value,
            accept: vec![Accept::Succeeded],
            each_same: false,
        });
    }
    let mut fields = Fields::open(node, "need", faults)?;
    let needed = fields.required_text("node");
    let mut accept: Vec<Accept> = fields
        .list("accept")
        .iter()
        .filter_map(|node| choice(node, "accept", &ACCEPTED, faults))
        .collect();
    accept.sort_unstable();
    accept.dedup();
    let each_same = fields
        .choice("each", &[("same", true), ("all", false)])
        .unwrap_or(false);
    fields.finish();
    if each_same && here.for_each.is_none() && !here.faulty_for_each {
        faults.add(
            node.at,
            FaultCode::InvalidValue,
            "`each: same` joins item to item, and this node does not fan out",
            "add `for_each` or remove `each`",
        );
    }
    let needed = needed?;
    here.known.has_node(&needed, faults).then_some(NeedSpec {
        node: needed.value,
        accept: if accept.is_empty() {
            vec![Accept::Succeeded]
        } else {
            accept
        },
        each_same,
    })
}

impl NodeSpec {
    /// Whether it adds `capability` to resources of `slot`.
    pub(super) fn adds(&self, slot: &str, capability: &DottedName) -> bool {
        let Action::ResourceUpdate(update) = &self.action else {
            return false;
        };
        let updated = match (&update.slot, self.for_each.as_ref().map(|f| &f.over)) {
            (Some(slot), _) | (None, Some(Over::Slot(slot))) => slot,
            _ => return false,
        };
        updated == slot && update.add.contains(capability)
    }
}

/// Names of slots, checked.
pub(super) fn slots(nodes: &[Node], what: &str, known: &Known<'_>, faults: &Faults) -> Vec<String> {
    texts(nodes, what, faults)
        .into_iter()
        .filter(|slot| known.slot(slot, faults).is_some())
        .map(|slot| slot.value)
        .collect()
}
