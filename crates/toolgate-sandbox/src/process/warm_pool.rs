//! Sandboxes that were built ahead and wait for a command. Each fits one plan exactly; when something that the plan looked
//! at has changed, the new plan is another one and none of these fits it.

use std::collections::VecDeque;

use super::instance::SandboxInstance;

/// Plans that are kept warm at a time. Those used longest ago go first.
const PLANS: usize = 4;

/// Sandboxes by plan, the plan used last at the end.
#[derive(Debug, Default)]
pub(super) struct WarmPool {
    skill_directories: VecDeque<PoolEntry>,
}

#[derive(Debug)]
struct PoolEntry {
    plan: Vec<u8>,
    waiting: Vec<SandboxInstance>,
    being_built: usize,
}

impl WarmPool {
    /// Takes a sandbox for this plan, and remembers that the plan is in use.
    pub(super) fn take(&mut self, plan: &[u8]) -> Option<SandboxInstance> {
        let shelf = self.shelf(plan);
        shelf.waiting.pop()
    }

    /// Whether another one for this plan should be built; if so, somebody has to build it and say so. A plan that nobody has
    /// asked for lately has no place.
    pub(super) fn reserve(&mut self, plan: &[u8], most: usize) -> bool {
        let shelf = self.skill_directories.iter_mut().find(|shelf| shelf.plan == plan);
        let wanted = shelf.filter(|shelf| shelf.waiting.len() + shelf.being_built < most);
        wanted.map(|shelf| shelf.being_built += 1).is_some()
    }

    /// Puts the one that was reserved aside for later; `None` if it couldn't be built.
    pub(super) fn fulfil(&mut self, plan: &[u8], instance: Option<SandboxInstance>) {
        if let Some(shelf) = self.skill_directories.iter_mut().find(|shelf| shelf.plan == plan) {
            shelf.being_built = shelf.being_built.saturating_sub(1);
            shelf.waiting.extend(instance);
        }
    }

    /// Remembers that the plan is in use.
    pub(super) fn touch(&mut self, plan: &[u8]) {
        self.shelf(plan);
    }

    /// Drops all of them.
    pub(super) fn clear(&mut self) {
        self.skill_directories.clear();
    }

    fn shelf(&mut self, plan: &[u8]) -> &mut PoolEntry {
        let found = self.skill_directories.iter().position(|shelf| shelf.plan == plan);
        let shelf = found.and_then(|at| self.skill_directories.remove(at));
        if shelf.is_none() && self.skill_directories.len() == PLANS {
            self.skill_directories.pop_front();
        }
        self.skill_directories.push_back(shelf.unwrap_or_else(|| PoolEntry {
            plan: plan.to_vec(),
            waiting: Vec::new(),
            being_built: 0,
        }));
        let last = self.skill_directories.len() - 1;
        &mut self.skill_directories[last]
    }
}
