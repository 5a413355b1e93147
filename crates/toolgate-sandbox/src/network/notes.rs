//! What was refused, noted once each, for the reply and the record.

use std::sync::{Arc, Mutex, PoisonError};

use toolgate_contract::Denial;

/// Different refusals that are kept.
const MOST: usize = 64;

/// A list of refusals. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<Denial>>>);

impl Notes {
    /// Notes a refusal, unless it is noted already.
    pub(super) fn add(&self, denial: Denial) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() < MOST && !list.contains(&denial) {
            list.push(denial);
        }
    }

    /// What was refused so far.
    pub(crate) fn all(&self) -> Vec<Denial> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
