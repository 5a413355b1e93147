//! The denials of one sandbox, each kept once, for the reply and the journal. Names that were looked up but never connected
//! to are kept as well: a connection to a port without a listener fails in the kernel, where the proxy doesn't see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_contract::{Denial, ErrorCode};

/// Different denials, and different names, that are kept.
const MAX_RECORDS: usize = 64;

/// The denials of one sandbox. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct DenialLog(Arc<Mutex<DenialRecords>>);

#[derive(Debug, Default)]
struct DenialRecords {
    denials: Vec<Denial>,
    /// Names that were allowed, and whether a connection to them came.
    names: BTreeMap<String, bool>,
}

impl DenialLog {
    /// Keeps a denial, unless an equal one is kept already.
    pub(super) fn add(&self, denial: Denial) {
        let denials = &mut self.0.lock().denials;
        if denials.len() < MAX_RECORDS && !denials.contains(&denial) {
            denials.push(denial);
        }
    }

    /// Keeps that a name was looked up and got a synthetic address.
    pub(super) fn looked_up(&self, name: &str) {
        let names = &mut self.0.lock().names;
        if names.len() < MAX_RECORDS && !names.contains_key(name) {
            names.insert(name.to_owned(), false);
        }
    }

    /// Keeps that a connection to a host came at one of the listeners.
    pub(super) fn mark_connected(&self, host: &str) {
        if let Some(connected) = self.0.lock().names.get_mut(host) {
            *connected = true;
        }
    }

    /// All denials so far.
    pub(crate) fn all(&self) -> Vec<Denial> {
        self.0.lock().denials.clone()
    }

    /// The denials since this was last asked. What is denied again is kept again.
    pub(crate) fn take(&self) -> Vec<Denial> {
        std::mem::take(&mut self.0.lock().denials)
    }

    /// What may explain a failure though nothing was denied: names that were looked up and never connected to.
    pub(crate) fn unused(&self) -> Vec<Denial> {
        let records = self.0.lock();
        let unused = records.names.iter().filter(|(_, connected)| !**connected);
        unused.map(|(name, _)| never_connected(name)).collect()
    }
}

fn never_connected(name: &str) -> Denial {
    let reason = format!(
        "{name} was looked up, but no connection to it came at an allowed port: those are 80 and 443, and what a call \
         asks for. For another port ask for `net.connect={name}:PORT`."
    );
    Denial { code: ErrorCode::NetworkDenied, missing: Vec::new(), reason, rule: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_without_a_connection_are_unused() {
        let log = DenialLog::default();
        log.looked_up("a.test");
        log.looked_up("b.test");
        log.mark_connected("a.test");
        log.looked_up("a.test");
        log.mark_connected("never.asked.test");
        let unused = log.unused();
        assert_eq!(unused.len(), 1);
        assert!(unused[0].reason.contains("net.connect=b.test:PORT"), "{unused:?}");
        assert_eq!(log.all(), []);
    }

    #[test]
    fn what_is_denied_again_is_told_again_to_whoever_takes_the_denials() {
        let log = DenialLog::default();
        let denial = || Denial::of_host("a.test", 443, "a.test wasn't reached.", None);
        log.add(denial());
        log.add(denial());
        assert_eq!(log.take(), [denial()]);
        assert_eq!(log.take(), []);
        log.add(denial());
        assert_eq!(log.take(), [denial()]);
    }
}
