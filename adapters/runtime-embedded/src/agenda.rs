//! What the runtime knows to be open, without any task or timer of its own for it: which operations
//! are to be asked, which effects are to be performed, and when the next try is due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::time::Instant;

use control_plane_ports::EffectId;
use kernel::id::OperationId;

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    Advance(OperationId),
    Perform(OperationId, EffectId),
}

/// Tasks that are ready, under way, or waiting for another try. A task is in it at most once.
#[derive(Default)]
pub struct Agenda {
    advances: VecDeque<OperationId>,
    performs: VecDeque<(OperationId, EffectId)>,
    /// Ready, under way or waiting, with the tries made so far.
    known: HashMap<Task, u32>,
    under_way: HashSet<Task>,
    /// Operations that were told of while they were being asked.
    again: HashSet<OperationId>,
    waiting: BinaryHeap<Reverse<(Instant, Task)>>,
    /// How many of the known tasks are advances.
    asked: usize,
}

impl Agenda {
    /// The operation must be asked, once more if it is being asked right now.
    pub fn ask(&mut self, operation: OperationId) {
        let task = Task::Advance(operation);
        if self.under_way.contains(&task) {
            self.again.insert(operation);
        } else if self.known.insert(task, 0).is_none() {
            self.asked += 1;
            self.advances.push_back(operation);
        }
    }

    /// The effect must be performed, unless it is on the agenda already.
    pub fn perform(&mut self, operation: OperationId, effect: EffectId) {
        let task = Task::Perform(operation, effect);
        if let std::collections::hash_map::Entry::Vacant(entry) = self.known.entry(task) {
            entry.insert(0);
            self.performs.push_back((operation, effect));
        }
    }

    /// The next operation to ask.
    pub fn next_advance(&mut self) -> Option<OperationId> {
        let operation = self.advances.pop_front()?;
        self.under_way.insert(Task::Advance(operation));
        Some(operation)
    }

    /// The next effect to perform.
    pub fn next_perform(&mut self) -> Option<(OperationId, EffectId)> {
        let (operation, effect) = self.performs.pop_front()?;
        self.under_way.insert(Task::Perform(operation, effect));
        Some((operation, effect))
    }

    /// The task is done.
    pub fn done(&mut self, task: Task) {
        self.under_way.remove(&task);
        self.known.remove(&task);
        if let Task::Advance(operation) = task {
            self.asked -= 1;
            if self.again.remove(&operation) {
                self.ask(operation);
            }
        }
    }

    /// How often the task was tried before.
    pub fn tries(&self, task: Task) -> u32 {
        self.known.get(&task).copied().unwrap_or_default()
    }

    /// The task failed in transport and is tried again at `at`.
    pub fn retry(&mut self, task: Task, at: Instant) {
        self.under_way.remove(&task);
        if let Some(tries) = self.known.get_mut(&task) {
            *tries = tries.saturating_add(1);
        }
        self.waiting.push(Reverse((at, task)));
    }

    /// Makes ready what has waited long enough.
    pub fn ripen(&mut self, now: Instant) {
        while let Some(Reverse((at, task))) = self.waiting.peek().copied() {
            if at > now {
                return;
            }
            self.waiting.pop();
            match task {
                Task::Advance(operation) => self.advances.push_back(operation),
                Task::Perform(operation, effect) => self.performs.push_back((operation, effect)),
            }
        }
    }

    /// When the first waiting task is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((at, _))| *at)
    }

    /// Operations to be asked or being asked, and tasks waiting for another try.
    pub fn counts(&self) -> (usize, usize) {
        (self.asked, self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_told_of_while_it_is_asked_is_asked_once_more() {
        let mut agenda = Agenda::default();
        let operation = OperationId::new_v7();
        agenda.ask(operation);
        agenda.ask(operation);
        assert_eq!(agenda.next_advance(), Some(operation));
        assert_eq!(agenda.next_advance(), None);
        agenda.ask(operation);
        agenda.ask(operation);
        agenda.done(Task::Advance(operation));
        assert_eq!(agenda.next_advance(), Some(operation));
        agenda.done(Task::Advance(operation));
        assert_eq!(agenda.next_advance(), None);
    }

    #[test]
    fn an_effect_is_on_the_agenda_once_until_it_is_done() {
        let mut agenda = Agenda::default();
        let (operation, effect) = (OperationId::new_v7(), EffectId::new_v7());
        let task = Task::Perform(operation, effect);
        agenda.perform(operation, effect);
        agenda.perform(operation, effect);
        assert_eq!(agenda.next_perform(), Some((operation, effect)));
        let now = Instant::now();
        agenda.retry(task, now);
        agenda.perform(operation, effect);
        assert_eq!(agenda.next_perform(), None);
        agenda.ripen(now);
        assert_eq!(
            (agenda.next_perform(), agenda.tries(task)),
            (Some((operation, effect)), 1)
        );
        agenda.done(task);
        agenda.perform(operation, effect);
        assert_eq!(agenda.next_perform(), Some((operation, effect)));
    }
}
