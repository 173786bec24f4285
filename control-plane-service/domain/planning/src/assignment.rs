//! Assigning resources to distinct places.
//!
//! Taking candidates one after another and giving each the first free place is wrong as soon as one of
//! them can be in several places. Here each new candidate may make earlier ones move to another of
//! their places (augmenting paths), so a set is refused only if no assignment of it exists. Sets that can
//! be assigned are independent in a matroid; therefore adding candidates in the order of their worth, and
//! skipping those that no longer fit, yields a set of greatest size and, among those, of greatest worth.

use std::collections::HashMap;
use std::hash::Hash;

/// Elements with places of their own, none shared.
#[derive(Debug)]
pub(crate) struct Assignment<P> {
    choices: Vec<Vec<P>>,
    taken: HashMap<P, usize>,
}

impl<P: Clone + Eq + Hash> Assignment<P> {
    pub(crate) fn new() -> Self {
        Self {
            choices: Vec::new(),
            taken: HashMap::new(),
        }
    }

    /// Adds an element that can be in any of `places`; false, and nothing changes, when there is no room.
    pub(crate) fn add(&mut self, places: Vec<P>) -> bool {
        self.choices.push(places);
        let element = self.choices.len() - 1;
        let placed = self.place(element);
        if !placed {
            self.choices.pop();
        }
        placed
    }

    /// Breadth-first search for a free place; what stands in the way moves along the way found.
    fn place(&mut self, element: usize) -> bool {
        let mut came_from: HashMap<P, Option<P>> = HashMap::new();
        let mut open: Vec<(Option<P>, usize)> = vec![(None, element)];
        let mut next = 0;
        while next < open.len() {
            let (via, mover) = open[next].clone();
            next += 1;
            for place in &self.choices[mover] {
                if came_from.contains_key(place) {
                    continue;
                }
                came_from.insert(place.clone(), via.clone());
                match self.taken.get(place) {
                    Some(occupant) => open.push((Some(place.clone()), *occupant)),
                    None => {
                        self.shift(place.clone(), &came_from, element);
                        return true;
                    }
                }
            }
        }
        false
    }

    fn shift(&mut self, free: P, came_from: &HashMap<P, Option<P>>, element: usize) {
        let mut place = free;
        loop {
            match came_from.get(&place).cloned().flatten() {
                Some(before) => {
                    if let Some(mover) = self.taken.get(&before).copied() {
                        self.taken.insert(place, mover);
                    }
                    place = before;
                }
                None => {
                    self.taken.insert(place, element);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_earlier_choice_gives_way() {
        let mut assignment = Assignment::new();
        assert!(assignment.add(vec!["a", "b"]));
        assert!(assignment.add(vec!["a"]));
        assert!(!assignment.add(vec!["a", "b"]));
        assert!(assignment.add(vec!["b", "c"]));
    }

    /// The size of the largest assignment, by trying everything.
    fn largest(choices: &[Vec<u8>], taken: u32) -> usize {
        let Some((first, rest)) = choices.split_first() else {
            return 0;
        };
        let without = largest(rest, taken);
        let with = first
            .iter()
            .filter(|p| taken & (1 << **p) == 0)
            .map(|p| 1 + largest(rest, taken | 1 << p));
        with.fold(without, usize::max)
    }

    proptest! {
        #[test]
        fn the_set_is_as_large_as_any(choices in proptest::collection::vec(proptest::collection::vec(0..5_u8, 0..4), 0..7)) {
            let mut assignment = Assignment::new();
            let size = choices.iter().filter(|places| assignment.add((*places).clone())).count();
            prop_assert_eq!(size, largest(&choices, 0));
            let holders: std::collections::BTreeSet<usize> = assignment.taken.values().copied().collect();
            prop_assert_eq!(holders.len(), size);
            for (place, holder) in &assignment.taken {
                prop_assert!(assignment.choices[*holder].contains(place));
            }
        }
    }
}
