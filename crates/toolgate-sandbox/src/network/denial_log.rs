//! What was refused, noted once each, for the reply and the record; and names that were looked up and then not used, since a
//! connection to a port that nobody answers is refused by the kernel, which tells nobody.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_contract::{Denial, ErrorCode};

/// Different refusals, and different names, that are kept.
const MOST: usize = 64;

/// A list of refusals. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DenialLog(Arc<Mutex<DenialRecords>>);

#[derive(Debug, Default)]
struct DenialRecords {
    refused: Vec<Denial>,
    /// Names that passed, and whether anybody connected to them.
    names: BTreeMap<String, bool>,
}

impl DenialLog {
    /// Notes a refusal, unless it is noted already.
    pub(super) fn add(&self, denial: Denial) {
        let refused = &mut self.kept().refused;
        if refused.len() < MOST && !refused.contains(&denial) {
            refused.push(denial);
        }
    }

    /// Notes that a name was looked up and given an address.
    pub(super) fn looked_up(&self, name: &str) {
        let names = &mut self.kept().names;
        if names.len() < MOST && !names.contains_key(name) {
            names.insert(name.to_owned(), false);
        }
    }

    /// Notes that somebody connected to a host, at a port that is answered.
    pub(super) fn mark_connected(&self, host: &str) {
        if let Some(came) = self.kept().names.get_mut(host) {
            *came = true;
        }
    }

    /// What was refused so far.
    pub(crate) fn all(&self) -> Vec<Denial> {
        self.kept().refused.clone()
    }

    /// What may explain a failure though nothing was refused: names to which nobody has connected so far.
    pub(crate) fn unused(&self) -> Vec<Denial> {
        let kept = self.kept();
        let unused = kept.names.iter().filter(|(_, came)| !**came);
        unused.map(|(name, _)| never_connected(name)).collect()
    }

    fn kept(&self) -> MutexGuard<'_, DenialRecords> {
        self.0.lock()
    }
}

fn never_connected(name: &str) -> Denial {
    let reason = format!(
        "{name} was looked up, but no connection to it came at a port that leads out: those are 80 and 443, and what a \
         call asks for. For another port ask for `net.connect={name}:PORT`."
    );
    Denial { code: ErrorCode::NetworkDenied, missing: Vec::new(), reason, rule: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_to_which_nobody_came_are_unused() {
        let notes = DenialLog::default();
        notes.looked_up("a.test");
        notes.looked_up("b.test");
        notes.mark_connected("a.test");
        notes.looked_up("a.test");
        notes.mark_connected("never.asked.test");
        let unused = notes.unused();
        assert_eq!(unused.len(), 1);
        assert!(unused[0].reason.contains("net.connect=b.test:PORT"), "{unused:?}");
        assert_eq!(notes.all(), []);
    }
}
