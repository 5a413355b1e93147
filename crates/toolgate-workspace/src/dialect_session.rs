//! Calls in a dialect: what a model asked for becomes a native call, walks the one path like any other, and is said back in the
//! model's own words.

use std::path::Path;

use parking_lot::Mutex;
use toolgate_contract::{Call, CancellationToken, Reply, ToolError};
use toolgate_dialects::{AskedCall, DialectSet, DialectState, NativeCall, ShownResult, step_id};
use toolgate_runtime::{Gate, Session};

/// What one session has said and heard in its dialects.
#[derive(Debug)]
pub struct DialectSession(Mutex<DialectState>);

/// A call that was made in a dialect.
#[derive(Debug)]
pub struct DialectReply {
    /// What the model gets; none if the call was a native one, whose reply says everything.
    pub shown: Option<ShownResult>,
    /// The native reply.
    pub reply: Reply,
}

impl DialectSession {
    /// A new session in a workspace.
    pub fn new(set: DialectSet, workspace: &Path) -> Self {
        Self(Mutex::new(DialectState::new(set, workspace.display().to_string())))
    }

    /// A session that goes on from an earlier state.
    pub fn resume(state: DialectState) -> Self {
        Self(Mutex::new(state))
    }

    /// The state, to go on from later.
    pub fn state(&self) -> DialectState {
        self.0.lock().clone()
    }

    /// The names of the dialects; none for the native tools alone.
    pub fn names(&self) -> Option<String> {
        let state = self.0.lock();
        (!state.set().is_native()).then(|| state.set().to_string())
    }

    /// Makes a call. Native calls after the first have ids of their own, made of the call's.
    pub async fn perform(&self, call: Call, gate: &Gate, session: &Session, cancel: CancellationToken) -> DialectReply {
        let begun = {
            let mut state = self.0.lock();
            state.set_session(&session.id);
            state.begin(&AskedCall { id: &call.tool_call_id, tool: &call.name, args: &call.args })
        };
        let Some(mut spoken) = begun else {
            return DialectReply { shown: None, reply: gate.perform(self.native(call), session, cancel).await };
        };
        let mut step = 1;
        let (reply, shown) = loop {
            let reply = match spoken.native() {
                Ok(native) => gate.perform(native_call(&call, native, step), session, cancel.clone()).await,
                Err(error) => gate.refuse(call.clone(), session, error),
            };
            let shown = self.0.lock().answer(&mut spoken, &reply);
            match shown {
                Some(shown) => break (reply, shown),
                None => step += 1,
            }
        };
        // A first native call may have succeeded where the second one isn't made.
        let reply = match spoken.native() {
            Err(error) if reply.ok => Reply::refused(call.tool_call_id, error),
            _ => reply,
        };
        DialectReply { shown: Some(shown), reply }
    }

    /// A native call; a tool of an MCP server may have a client's prefix.
    fn native(&self, mut call: Call) -> Call {
        if let Some(name) = self.0.lock().set().server_tool(&call.name) {
            call.name = name;
        }
        call
    }

    /// Refuses a call that couldn't be parsed, and records it.
    pub fn refuse(&self, call: Call, gate: &Gate, session: &Session, why: ToolError) -> DialectReply {
        let name = call.name.clone();
        let reply = gate.refuse(call, session, why);
        let shown = reply.error.as_ref().and_then(|error| self.0.lock().fail(&reply.tool_call_id, &name, error));
        DialectReply { shown, reply }
    }
}

/// The native call of a step. What the front end asked for beside the arguments goes along.
fn native_call(asked: &Call, native: &NativeCall, step: usize) -> Call {
    let mut call = asked.clone();
    call.tool_call_id = step_id(&asked.tool_call_id, step);
    (call.name, call.args) = (native.tool.to_owned(), native.args.clone());
    // A version is that of the native tool, which whoever speaks a dialect doesn't know.
    call.version = None;
    call.requested_permissions.extend(native.requested.iter().cloned());
    call.justification = native.justification.clone().or(call.justification);
    call
}
