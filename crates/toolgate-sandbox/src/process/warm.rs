//! Sandboxes that were built ahead and wait for a command. Each fits one plan exactly; when something that the plan looked
//! at has changed, the new plan is another one and none of these fits it.

use std::collections::VecDeque;

use super::cage::Cage;

/// Plans that are kept warm at a time. Those used longest ago go first.
const PLANS: usize = 4;

/// Sandboxes by plan, the plan used last at the end.
#[derive(Debug, Default)]
pub(super) struct Warm {
    shelves: VecDeque<Shelf>,
}

#[derive(Debug)]
struct Shelf {
    plan: Vec<u8>,
    waiting: Vec<Cage>,
}

impl Warm {
    /// Takes a sandbox for this plan, and remembers that the plan is in use.
    pub(super) fn take(&mut self, plan: &[u8]) -> Option<Cage> {
        let shelf = self.shelf(plan);
        shelf.waiting.pop()
    }

    /// Whether another one for this plan should be built. A plan that nobody has asked for lately has no place.
    pub(super) fn wants(&self, plan: &[u8], most: usize) -> bool {
        self.shelves.iter().any(|shelf| shelf.plan == plan && shelf.waiting.len() < most)
    }

    /// Puts one aside for later.
    pub(super) fn put(&mut self, plan: &[u8], cage: Cage) {
        self.shelf(plan).waiting.push(cage);
    }

    /// Drops all of them.
    pub(super) fn clear(&mut self) {
        self.shelves.clear();
    }

    fn shelf(&mut self, plan: &[u8]) -> &mut Shelf {
        let found = self.shelves.iter().position(|shelf| shelf.plan == plan);
        let shelf = found.and_then(|at| self.shelves.remove(at));
        if shelf.is_none() && self.shelves.len() == PLANS {
            self.shelves.pop_front();
        }
        self.shelves.push_back(shelf.unwrap_or_else(|| Shelf { plan: plan.to_vec(), waiting: Vec::new() }));
        let last = self.shelves.len() - 1;
        &mut self.shelves[last]
    }
}
