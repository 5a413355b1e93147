//! What running servers list now, beside what a person approved. A tool that its server defines differently is refused when it is
//! called; models aren't told of it either, until it is as it was approved, or is approved anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::broadcast;
use toolgate_contract::ServerListener;

use crate::registry::Registry;
use crate::registry_history::RegistryHistory;

/// How many changes are kept for somebody who is slow to hear of them.
const BACKLOG: usize = 16;

/// A list that has changed because of another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerListChange {
    /// The tools that models are told of.
    Tools,
    /// What servers have to read.
    Resources,
}

/// What servers list now.
pub(crate) struct ServerLists {
    registries: Arc<RegistryHistory>,
    /// The hashes of definitions by the server and its name for the tool, of servers that have listed theirs.
    listed: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    changes: broadcast::Sender<ServerListChange>,
}

impl ServerLists {
    pub(crate) fn new(registries: Arc<RegistryHistory>) -> Arc<Self> {
        let (changes, _) = broadcast::channel(BACKLOG);
        Arc::new(Self { registries, listed: Mutex::default(), changes })
    }

    /// Hears of changes from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ServerListChange> {
        self.changes.subscribe()
    }

    /// The names of the tools that their servers define differently now, or not at all.
    pub(crate) fn withheld(&self) -> BTreeSet<String> {
        withheld(self.registries.current(), &self.listed.lock())
    }
}

fn withheld(registry: &Registry, listed: &BTreeMap<String, BTreeMap<String, String>>) -> BTreeSet<String> {
    if listed.is_empty() {
        return BTreeSet::new();
    }
    let differs = registry.approved_definitions().filter(|(_, approved)| {
        listed.get(approved.server).is_some_and(|now| now.get(approved.tool).map(String::as_str) != Some(approved.hash))
    });
    differs.map(|(name, _)| name.to_owned()).collect()
}

impl ServerListener for ServerLists {
    fn tools_listed(&self, server: &str, definitions: &BTreeMap<String, String>) {
        let mut listed = self.listed.lock();
        let before = withheld(self.registries.current(), &listed);
        listed.insert(server.to_owned(), definitions.clone());
        if withheld(self.registries.current(), &listed) != before {
            // It is no error if nobody listens.
            let _ = self.changes.send(ServerListChange::Tools);
        }
    }

    fn resources_changed(&self, _server: &str) {
        let _ = self.changes.send(ServerListChange::Resources);
    }
}
