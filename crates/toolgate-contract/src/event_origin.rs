//! Which run, turn, trace and call an event belongs to.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Event, EventPayload};

/// The run, turn, trace and call that events belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventOrigin {
    /// The run.
    pub run: String,
    /// The agent's turn, if there is one.
    pub turn: Option<u64>,
    /// The trace, which an agent's calls share.
    pub trace_id: String,
    /// The call.
    pub tool_call_id: String,
}

impl EventOrigin {
    /// An event of this call.
    pub fn event(&self, time: Timestamp, payload: EventPayload) -> Event {
        Event {
            time,
            run: self.run.clone(),
            turn: self.turn,
            trace_id: Some(self.trace_id.clone()),
            tool_call_id: Some(self.tool_call_id.clone()),
            payload,
        }
    }
}
