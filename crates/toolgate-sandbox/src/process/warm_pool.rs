//! Sandboxes that were built ahead and wait for a command. Each is for exactly one plan. When something on the machine changes
//! that a plan depends on, the next plan is a different one, and none of these sandboxes is used for it.

use std::collections::VecDeque;

use super::instance::SandboxInstance;

/// Plans in the pool. The least recently used one is evicted first.
const PLANS: usize = 4;

/// Sandboxes by plan, the most recently used plan last.
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
    /// Takes a sandbox for this plan, and marks the plan as used.
    pub(super) fn take(&mut self, plan: &[u8]) -> Option<SandboxInstance> {
        let entry = self.entry(plan);
        entry.waiting.pop()
    }

    /// Reserves space for one more sandbox of this plan. False if there are enough, or if the plan was evicted. After true, the
    /// caller builds one and calls [`WarmPool::finish_reservation`].
    pub(super) fn reserve(&mut self, plan: &[u8], most: usize) -> bool {
        let entry = self.entries.iter_mut().find(|entry| entry.plan == plan);
        let wanted = entry.filter(|entry| entry.waiting.len() + entry.being_built < most);
        wanted.map(|entry| entry.being_built += 1).is_some()
    }

    /// Adds the sandbox that space was reserved for; `None` if it couldn't be built.
    pub(super) fn finish_reservation(&mut self, plan: &[u8], instance: Option<SandboxInstance>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.plan == plan) {
            entry.being_built = entry.being_built.saturating_sub(1);
            entry.waiting.extend(instance);
        }
    }

    /// Marks the plan as used.
    pub(super) fn touch(&mut self, plan: &[u8]) {
        self.entry(plan);
    }

    /// Drops all sandboxes.
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
