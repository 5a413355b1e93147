//! The tools of a gate over time. A person may approve other tools of servers while a session runs; then there is another registry.
//! Earlier ones stay, so that a declaration that somebody holds stays as it was.

use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::registry::Registry;

/// The registries of a gate, oldest first.
pub(crate) struct RegistryHistory {
    first: RegistryVersion,
    /// Held while one is added.
    adding: Mutex<()>,
}

struct RegistryVersion {
    registry: Registry,
    next: OnceLock<Box<RegistryVersion>>,
}

impl RegistryHistory {
    pub(crate) fn new(first: Registry) -> Self {
        Self { first: RegistryVersion { registry: first, next: OnceLock::new() }, adding: Mutex::default() }
    }

    /// The registry that counts.
    pub(crate) fn current(&self) -> &Registry {
        &self.last().registry
    }

    /// Changes a copy of the registry, which counts from then on.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Registry)) {
        let _turn = self.adding.lock();
        let last = self.last();
        let mut registry = last.registry.clone();
        change(&mut registry);
        // Nobody else adds one, so there is none yet.
        let _ = last.next.set(Box::new(RegistryVersion { registry, next: OnceLock::new() }));
    }

    fn last(&self) -> &RegistryVersion {
        let mut last = &self.first;
        while let Some(next) = last.next.get() {
            last = next;
        }
        last
    }
}
