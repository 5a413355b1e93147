//! Calls in a dialect: what a model asked for becomes a native call, walks the one path like any other, and is said back in the
//! model's own words.

use std::path::Path;

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_contract::{Call, CancellationToken, Event, EventPayload, RefusedRequest, Reply, ToolError};
use toolgate_dialects::{AskedCall, Dialect, DialectMemory, EnterFault, NativeCall, ShownResult};
use toolgate_runtime::Session;

use crate::workspace::Workspace;

/// What one session has said and heard in a dialect.
#[derive(Debug)]
pub struct DialectSession {
    dialect: &'static Dialect,
    memory: Mutex<DialectMemory>,
}

/// A call that was made in a dialect.
#[derive(Debug)]
pub struct DialectReply {
    /// What the model gets.
    pub shown: ShownResult,
    /// The native reply; none if no native call could be made of it.
    pub reply: Option<Reply>,
}

impl DialectSession {
    /// A new session in a workspace.
    pub fn new(dialect: &'static Dialect, workspace: &Path) -> Self {
        Self { dialect, memory: Mutex::new(DialectMemory::new(workspace.display().to_string())) }
    }

    /// The dialect.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Makes a call. The ids of its native calls begin with `id`.
    pub async fn perform(
        &self,
        (name, args): (&str, &Value),
        id: &str,
        workspace: &Workspace,
        session: &Session,
        cancel: CancellationToken,
    ) -> DialectReply {
        session.id.clone_into(&mut self.memory.lock().session);
        let asked = AskedCall { id, tool: name, args };
        let fail = |fault: &EnterFault| self.dialect.fail(&asked, fault, &self.memory.lock());
        let entered = self.dialect.enter(name, args, &self.memory.lock());
        let mut entered = match entered {
            Ok(entered) => entered,
            Err(fault) => {
                let refused = self.refuse(name, &fault, workspace, session);
                let fault = refused.err().map_or(fault, EnterFault::Refused);
                return DialectReply { shown: fail(&fault), reply: None };
            }
        };
        let mut step = 1;
        loop {
            let call = native_call(
                &entered.native,
                &if step == 1 { id.to_owned() } else { format!("{id}_{step}") },
                workspace,
            );
            let reply = workspace.gate.perform(call, session, cancel.clone()).await;
            step += 1;
            let next = self.dialect.next(&entered, &reply, &self.memory.lock());
            match next {
                Ok(Some(next)) => entered = next,
                Ok(None) => {
                    let shown = self.dialect.leave(&entered, &reply, &mut self.memory.lock());
                    return DialectReply { shown, reply: Some(reply) };
                }
                Err(fault) => return DialectReply { shown: fail(&fault), reply: Some(reply) },
            }
        }
    }

    /// Records a call of which no native one can be made.
    fn refuse(
        &self,
        name: &str,
        fault: &EnterFault,
        workspace: &Workspace,
        session: &Session,
    ) -> Result<(), ToolError> {
        let code = match fault {
            EnterFault::UnknownTool => "unknown_tool",
            EnterFault::Arguments(_) => "invalid_args",
            EnterFault::Refused(error) => error.code.as_str(),
        };
        let refused = RefusedRequest {
            door: "dialect".into(),
            code: code.into(),
            request: format!("{} {name}", self.dialect.name),
            from: None,
            unrecorded: 0,
        };
        let event = Event {
            time: workspace.clock.now(),
            run: session.run.clone(),
            turn: session.turn,
            trace_id: None,
            tool_call_id: None,
            payload: EventPayload::RequestRefused(refused),
        };
        session.recorder.record(&[event])
    }
}

fn native_call(native: &NativeCall, id: &str, workspace: &Workspace) -> Call {
    let mut call = Call::new(native.tool, native.args.clone(), workspace.clock.as_ref());
    call.tool_call_id = id.to_owned();
    call.requested_permissions.clone_from(&native.requested);
    call.justification.clone_from(&native.justification);
    call
}
