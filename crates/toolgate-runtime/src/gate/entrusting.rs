//! Calls that a client executes itself. A hook of the client brings each twice: before, when it takes every step of the path but the
//! run, and after, when what became of it is recorded. So such a call is judged, approved and recorded like any other.

use std::sync::Arc;

use serde_json::json;
use toolgate_changes::EntrustedCall;
use toolgate_contract::{
    Call, CallEnding, CancellationToken, Enforced, EventOrigin, EventPayload, Guarantee, GuaranteeLevel, Reply,
    ToolError,
};

use super::call_record::CallRecord;
use super::{Gate, path};
use crate::session::Session;

/// How a call ended that a client executed.
#[derive(Debug, Clone, Default)]
pub struct ClientEnding {
    /// Why it failed; none if the client says that it worked.
    pub failed: Option<ToolError>,
    /// Whether a secret was replaced in what the client showed its model.
    pub redacted: bool,
    /// What else is known of it, for people.
    pub note: Option<String>,
}

impl Gate {
    /// Takes a call along the path until it may run, and leaves running to the client whose hook brought it. A call that may not run is
    /// refused and recorded like any other. `key` is what the client's next event about the call is recognised by.
    pub async fn entrust(
        &self,
        call: Call,
        key: &str,
        session: &Session,
        cancel: CancellationToken,
    ) -> Result<EntrustedCall, Box<Reply>> {
        path::entrust(CallRecord::new(self, session, call, cancel), key).await
    }

    /// Why a person would have to approve a call now; none if nobody has to. An error is why it is refused in any case. Nothing
    /// runs, nothing is recorded and nobody is asked.
    pub fn standing(&self, call: Call, session: &Session) -> Result<Option<String>, ToolError> {
        path::standing(CallRecord::new(self, session, call, CancellationToken::new()))
    }

    /// Records what became of a call that a client executed. False if it was recorded before.
    pub fn end_entrusted(
        &self,
        entrusted: &EntrustedCall,
        session: &Session,
        ending: ClientEnding,
    ) -> Result<bool, ToolError> {
        let (trace_id, tool_call_id) = (entrusted.trace_id.clone(), entrusted.tool_call_id.clone());
        let origin = Arc::new(EventOrigin { run: entrusted.run.clone(), turn: None, trace_id, tool_call_id });
        let recorder = Arc::clone(&session.recorder);
        let applier = self.parts.changes.for_call(recorder, Arc::clone(&origin), session.id.clone());
        let Some(entrusted) = applier.end_entrusted()? else { return Ok(false) };
        let now = self.parts.clock.now();
        let taken = now.duration_since(entrusted.started).as_millis();
        let mut payload = json!({ "executed_by": entrusted.hooked.client });
        if let Some(note) = &ending.note {
            payload["note"] = json!(note);
        }
        let end = CallEnding {
            duration_ms: u64::try_from(taken).unwrap_or_default(),
            payload: Some(payload),
            files_changed: entrusted.changed.iter().cloned().collect(),
            enforced: enforced(),
            redacted: ending.redacted,
            ..CallEnding::default()
        };
        let payload = match ending.failed {
            None => EventPayload::CallCompleted(end),
            Some(error) => EventPayload::CallFailed { class: error.code.class(), error, ending: end },
        };
        session.record(&[origin.event(now, payload)])?;
        Ok(true)
    }
}

/// What holds where a client opens files itself: nothing keeps it to the paths that were judged.
fn enforced() -> Enforced {
    let held = [(Guarantee::Paths, GuaranteeLevel::NotHeld), (Guarantee::Undo, GuaranteeLevel::Partly)];
    Enforced(held.into_iter().collect())
}
