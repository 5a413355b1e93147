//! Sandboxes that were built ahead and wait for a command. Each fits one plan exactly; when something that the plan looked
//! at has changed, the new plan is another one and none of these fits it.

use std::collections::VecDeque;

use super::instance::SandboxInstance;

/// Plans that are kept warm at a time. Those used longest ago go first.
const PLANS: usize = 4;

/// Sandboxes by plan, the plan used last at the end.
#[derive(Debug, Default)]
pub(super) struct WarmPool {
    entries: VecDeque<PoolEntry>,
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
        let entry = self.entry(plan);
        entry.waiting.pop()
    }

    /// Whether another one for this plan should be built; if so, somebody has to build it and say so. A plan that nobody has
    /// asked for lately has no place.
    pub(super) fn reserve(&mut self, plan: &[u8], most: usize) -> bool {
        let entry = self.entries.iter_mut().find(|entry| entry.plan == plan);
        let wanted = entry.filter(|entry| entry.waiting.len() + entry.being_built < most);
        wanted.map(|entry| entry.being_built += 1).is_some()
    }

    /// Puts the one that was reserved aside for later; `None` if it couldn't be built.
    pub(super) fn fulfil(&mut self, plan: &[u8], instance: Option<SandboxInstance>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.plan == plan) {
            entry.being_built = entry.being_built.saturating_sub(1);
            entry.waiting.extend(instance);
        }
    }

    /// Remembers that the plan is in use.
    pub(super) fn touch(&mut self, plan: &[u8]) {
        self.entry(plan);
    }

    /// Drops all of them.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    fn entry(&mut self, plan: &[u8]) -> &mut PoolEntry {
        let found = self.entries.iter().position(|entry| entry.plan == plan);
        let entry = found.and_then(|at| self.entries.remove(at));
        if entry.is_none() && self.entries.len() == PLANS {
            self.entries.pop_front();
        }
        self.entries.push_back(entry.unwrap_or_else(|| PoolEntry {
            plan: plan.to_vec(),
            waiting: Vec::new(),
            being_built: 0,
        }));
        let last = self.entries.len() - 1;
        &mut self.entries[last]
    }
}
