//! Calls in a dialect: what a model asked for becomes a native call, walks the one path like any other, and is said back in the
//! model's own words.

use std::path::Path;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolgate_contract::{Call, CancellationToken, Decision, Reply, TOOLS_USE, ToolError, schemars};
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

/// What would become of a call if it were made now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CallCheck {
    /// Whether it would run, wait for a person's approval, or be refused.
    pub decision: Decision,
    /// Why a person would have to approve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
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
        let asked = AskedCall { id: &call.tool_call_id, tool: &call.name, args: &call.args };
        let begun = {
            let mut state = self.0.lock();
            state.set_session(&session.id);
            state.begin(asked, &|name| gate.has_tool(name))
        };
        let Some(mut spoken) = begun else {
            return DialectReply { shown: None, reply: gate.perform(self.native(call, gate), session, cancel).await };
        };
        let mut step = 1;
        let (reply, shown) = loop {
            let args = spoken.take_args();
            let reply = match spoken.native() {
                Ok(native) => gate.perform(native_call(&call, native, args, step), session, cancel.clone()).await,
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
            Err(error) if reply.ok => Reply::refused(call.tool_call_id.clone(), error),
            _ => reply,
        };
        DialectReply { shown: Some(shown), reply }
    }

    /// What would become of a call, with the policy and the approvals of this moment. Nothing runs, nothing is recorded and nobody is
    /// asked. Where a call in a dialect becomes several native ones, the first decides.
    pub fn check(&self, call: Call, gate: &Gate, session: &Session) -> CallCheck {
        let asked = AskedCall { id: &call.tool_call_id, tool: &call.name, args: &call.args };
        let begun = self.0.lock().begin(asked, &|name| gate.has_tool(name));
        let native = match begun.as_ref().map(|spoken| spoken.native()) {
            None => Ok(self.native(call, gate)),
            Some(native) => native.map(|native| native_call(&call, native, native.args.clone(), 1)),
        };
        match native.and_then(|call| gate.standing(call, session)) {
            Ok(None) => CallCheck { decision: Decision::Allow, reason: None, error: None },
            Ok(reason) => CallCheck { decision: Decision::Ask, reason, error: None },
            Err(error) => CallCheck { decision: Decision::Deny, reason: None, error: Some(error) },
        }
    }

    /// A native call; a tool of an MCP server may have a client's name for it, as the tool to call or as the one to use.
    fn native(&self, mut call: Call, gate: &Gate) -> Call {
        if let Some(name) = self.server_tool(&call.name, gate) {
            call.name = name;
        }
        if call.name == TOOLS_USE
            && let Some(used) = call.args.get_mut("tool")
            && let Some(name) = used.as_str().and_then(|name| self.server_tool(name, gate))
        {
            *used = name.into();
        }
        call
    }

    /// The native name of a tool of an MCP server, if this is what the session's client calls one.
    pub fn server_tool(&self, name: &str, gate: &Gate) -> Option<String> {
        self.0.lock().set().server_tool(name, &|name| gate.has_tool(name))
    }

    /// Refuses a call that couldn't be parsed, and records it.
    pub fn refuse(&self, call: Call, gate: &Gate, session: &Session, why: ToolError) -> DialectReply {
        let name = call.name.clone();
        let reply = gate.refuse(call, session, why);
        let shown = reply
            .error
            .as_ref()
            .and_then(|error| self.0.lock().fail(&reply.tool_call_id, &name, error, &|name| gate.has_tool(name)));
        DialectReply { shown, reply }
    }
}

/// The native call of a step. What the front end asked for beside the arguments goes along.
fn native_call(asked: &Call, native: &NativeCall, args: Value, step: usize) -> Call {
    Call {
        tool_call_id: step_id(&asked.tool_call_id, step),
        name: native.tool.to_owned(),
        // A version is that of the native tool, which whoever speaks a dialect doesn't know.
        version: None,
        args,
        requested_permissions: asked.requested_permissions.iter().chain(&native.requested).cloned().collect(),
        justification: native.justification.clone().or_else(|| asked.justification.clone()),
        hooked: asked.hooked.clone(),
        trace_id: asked.trace_id.clone(),
        timestamp: asked.timestamp,
    }
}
