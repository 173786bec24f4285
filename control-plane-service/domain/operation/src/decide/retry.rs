//! Retry. Of a failed operation it opens the next run: claims and validation again, what succeeded never
//! again, gates asked again only if what they cover has changed. Of a live one it lets go of held nodes.

use std::sync::Arc;

use super::Decider;
use super::carry::Carry;
use super::command::{Refused, refuse};
use crate::index::NodeIx;
use crate::row::{ClaimsState, NodeRunRow, NodeWait, Progress, RunRow};
use crate::state::{Cell, pending};
use crate::{Change, Command, EventKind, GateState, OperationStatus, PlanIndex, RefusalCode, RetrySelection};

impl Decider<'_> {
    pub(super) fn retry(
        &mut self,
        command: &Command,
        selection: &RetrySelection,
        revision: Option<&Arc<PlanIndex>>,
    ) -> Result<(), Refused> {
        match self.state.operation.status {
            OperationStatus::Failed => self.next_run(command, selection, revision),
            OperationStatus::Succeeded => refuse(
                RefusalCode::NothingToRetry,
                "the operation succeeded",
                "start a new operation",
            ),
            OperationStatus::Cancelled => refuse(
                RefusalCode::OperationOver,
                "a cancelled operation stays cancelled",
                "start a new operation",
            ),
            _ => self.retry_held(command, selection, revision.is_some()),
        }
    }

    fn retry_held(&mut self, command: &Command, selection: &RetrySelection, revised: bool) -> Result<(), Refused> {
        if revised {
            return refuse(
                RefusalCode::RunNotEnded,
                "inputs change between runs, and this one goes on",
                "cancel nothing: let the held nodes fail by resolving them, then retry with the new input",
            );
        }
        if self.state.winding_down() {
            let remedy = self.until_end("wait for the run's end, then retry");
            return refuse(RefusalCode::RunEnding, "the run is ending", remedy);
        }
        let held = self.selected_held(selection)?;
        self.accepted(command);
        for ix in held {
            self.try_again(ix);
        }
        Ok(())
    }

    fn selected_held(&self, selection: &RetrySelection) -> Result<Vec<NodeIx>, Refused> {
        let is_held = |ix: NodeIx| matches!(self.state.cells[ix].row.wait, Some(NodeWait::Intervention { .. }));
        let nodes = match selection {
            RetrySelection::AllFailed => (0..self.state.cells.len()).filter(|ix| is_held(*ix)).collect(),
            RetrySelection::Nodes(names) => {
                let mut nodes = Vec::new();
                for name in names {
                    let ix = self.known_node(name)?;
                    let items = &self.state.plan.edges(ix).items;
                    let wanted = if items.is_empty() {
                        core::slice::from_ref(&ix)
                    } else {
                        items
                    };
                    let held: Vec<NodeIx> = wanted.iter().copied().filter(|ix| is_held(*ix)).collect();
                    if held.is_empty() {
                        return refuse(
                            RefusalCode::RunNotEnded,
                            format!("{name} is {}, not held", self.state.cells[ix].row.state),
                            self.until_end(
                                "in a run that goes on only held nodes are retried; the others after its end",
                            ),
                        );
                    }
                    nodes.extend(held);
                }
                nodes.sort_unstable();
                nodes.dedup();
                nodes
            }
        };
        if nodes.is_empty() {
            let remedy = self.until_end("wait for the run's end, then retry what failed");
            let detail = match self.unresolved_nodes() {
                None => "no node is held".to_owned(),
                Some(nodes) => format!("the outcome of {nodes} is not known"),
            };
            return refuse(RefusalCode::NothingToRetry, detail, remedy);
        }
        Ok(nodes)
    }

    fn next_run(
        &mut self,
        command: &Command,
        selection: &RetrySelection,
        revision: Option<&Arc<PlanIndex>>,
    ) -> Result<(), Refused> {
        if let Some(next) = revision {
            self.fits(next)?;
        }
        let plan = Arc::clone(revision.unwrap_or(&self.state.plan));
        let carry = Carry::new(&self.state, &plan, revision.is_some());
        let named = carry.named(selection)?;
        let reset = carry.reset(named.as_deref());
        carry.needs_hold(named.as_deref(), &reset)?;
        if !reset.contains(&true) {
            return self.nothing_to_retry();
        }
        let rows = carry.rows;
        self.accepted(command);
        self.open_run(command, plan, rows, &reset);
        Ok(())
    }

    fn nothing_to_retry(&self) -> Result<(), Refused> {
        let all = 0..self.state.cells.len();
        let skipped = all.filter(|ix| self.state.skipped_what_others_need(*ix));
        let names: Vec<&str> = skipped.map(|ix| self.state.plan.node(ix).id.as_str()).collect();
        let remedy = if names.is_empty() {
            "everything has succeeded or was skipped on purpose: start a new operation".to_owned()
        } else {
            format!("name what was skipped to run it all the same: {}", names.join(", "))
        };
        refuse(RefusalCode::NothingToRetry, "there is nothing to run again", remedy)
    }

    fn fits(&self, next: &PlanIndex) -> Result<(), Refused> {
        let (now, then) = (self.state.plan.plan(), next.plan());
        let same = now.scenario.pack == then.scenario.pack
            && now.scenario.template == then.scenario.template
            && now.environment == then.environment;
        if !same || next.revision() != self.state.operation.plan_revision + 1 {
            return refuse(
                RefusalCode::PlanMismatch,
                "the new plan is not the next revision of this operation's plan",
                "plan again from the operation as it stands",
            );
        }
        Ok(())
    }

    fn open_run(&mut self, command: &Command, plan: Arc<PlanIndex>, rows: Vec<Option<NodeRunRow>>, reset: &[bool]) {
        let number = self.state.operation.run + 1;
        self.flush_past_rows();
        self.drop_old_nodes(&plan);
        let revised = plan.revision() != self.state.operation.plan_revision;
        let cells = rows.into_iter().enumerate().map(|(ix, row)| match row {
            Some(row) if !reset[ix] => Cell::new(row),
            _ => Cell::new(pending(&plan, ix, number)),
        });
        self.state.cells = cells.collect();
        self.state.plan = Arc::clone(&plan);
        self.record.nodes = (0..reset.len()).filter(|ix| reset[*ix]).collect();
        self.state.runs.push(RunRow {
            number,
            plan_revision: plan.revision(),
            opened_at: self.now,
            opened_by: command.actor.subject.clone(),
            ended_at: None,
            end: None,
        });
        self.record.runs.insert(number);
        let operation = &mut self.state.operation;
        operation.run = number;
        operation.plan_revision = plan.revision();
        operation.progress = Progress {
            wait_for_claims: operation.progress.wait_for_claims,
            ..Progress::default()
        };
        debug_assert_eq!(operation.progress.claims, ClaimsState::None);
        self.new_startable.clear();
        if revised {
            self.revise(&plan);
        }
        self.event(EventKind::RunOpened {
            run: number,
            plan_revision: plan.revision(),
        });
        self.state.derive();
        self.want_claims();
    }

    /// Rows of the ended run that this very decision changed are written before their nodes begin anew.
    fn flush_past_rows(&mut self) {
        let changed = core::mem::take(&mut self.record.nodes);
        let rows = changed.into_iter().map(|ix| self.state.cells[ix].row.clone());
        self.record.past_nodes.extend(rows);
    }

    fn drop_old_nodes(&mut self, plan: &PlanIndex) {
        let dropped = self
            .state
            .cells
            .iter()
            .filter(|cell| plan.position(&cell.row.node).is_none());
        let dropped: Vec<NodeRunRow> = dropped.map(|cell| cell.row.clone()).collect();
        self.state.dropped.retain(|row| plan.position(&row.node).is_none());
        self.state.dropped.extend(dropped);
        self.state.dropped.sort_by(|a, b| a.node.cmp(&b.node));
    }

    fn revise(&mut self, plan: &PlanIndex) {
        let digest = plan.document().digest();
        self.record.steps.push(Change::PlanRevised {
            revision: plan.revision(),
            digest,
        });
        self.event(EventKind::PlanRevised {
            plan_revision: plan.revision(),
            plan_digest: digest,
        });
        let changed = |gate: &&crate::row::GateRow| {
            gate.state == GateState::Passed && plan.gate_digest(&gate.node) != Some(gate.digest)
        };
        let void: Vec<_> = self.state.gates.values().filter(changed).map(|gate| gate.id).collect();
        for gate in void {
            self.close_gate(gate, GateState::Void);
        }
    }
}
