//! What dialects showed of a session's latest calls, for those that weren't waited for. The record has the native replies; what a
//! model is shown of them depends on what it was shown before, so it is kept as it was said.

use std::collections::VecDeque;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::schemars;
use toolgate_dialects::ShownResult;

/// How many calls of a session are remembered.
const MOST_RESULTS: usize = 256;

/// What a dialect shows of a call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ShownView {
    /// The text that the model gets.
    text: String,
    /// Whether the dialect marks it as an error.
    is_error: bool,
}

impl From<ShownResult> for ShownView {
    fn from(ShownResult { text, is_error }: ShownResult) -> Self {
        Self { text, is_error }
    }
}

/// The latest calls, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ShownResults(Mutex<VecDeque<(String, ShownView)>>);

impl ShownResults {
    /// Remembers what was shown of a call.
    pub(crate) fn keep(&self, call: String, shown: ShownView) {
        let mut latest = self.0.lock();
        if latest.len() == MOST_RESULTS {
            latest.pop_front();
        }
        latest.push_back((call, shown));
    }

    /// What was shown of a call.
    pub(crate) fn of(&self, call: &str) -> Option<ShownView> {
        self.0.lock().iter().rev().find(|(known, _)| known == call).map(|(_, shown)| shown.clone())
    }
}
