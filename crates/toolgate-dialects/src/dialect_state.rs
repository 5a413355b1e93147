//! What a session has said and heard in its dialects, and the steps of a call: from what the model asked for to native calls, and
//! from their replies to what the model gets. No step does I/O, so a conversation can be rebuilt from the record by taking the
//! same steps again.

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, Reply, ToolError};

use crate::dialect::{AskedCall, EnterFault, EnteredCall, NativeCall, ShownResult};
use crate::dialect_set::{DialectSet, IsTool};
use crate::memory::DialectMemory;

/// A session's dialects, with what each of them remembers.
#[derive(Debug, Clone, PartialEq)]
pub struct DialectState {
    set: DialectSet,
    memories: Vec<DialectMemory>,
}

/// A call in a dialect, on its way.
#[derive(Debug, Clone)]
pub struct SpokenCall<'a> {
    asked: AskedCall<'a>,
    speaker: usize,
    entered: Result<EnteredCall, EnterFault>,
}

impl SpokenCall<'_> {
    /// The native call to make next, or why none can be made.
    pub fn native(&self) -> Result<&NativeCall, ToolError> {
        self.entered.as_ref().map(|entered| &entered.native).map_err(|fault| native_error(self.asked.tool, fault))
    }

    /// Takes the arguments of the native call to make next.
    pub fn take_args(&mut self) -> Value {
        self.entered.as_mut().map(|entered| std::mem::take(&mut entered.native.args)).unwrap_or_default()
    }
}

impl DialectState {
    /// The state of a new session in this workspace.
    pub fn new(set: DialectSet, workspace: impl Into<String>) -> Self {
        let workspace = workspace.into();
        let memories = set.dialects().iter().map(|_| DialectMemory::new(workspace.clone())).collect();
        Self { set, memories }
    }

    /// The state of a session that goes on from an earlier one of the same dialects, perhaps in a workspace that was moved.
    #[must_use]
    pub fn going_on_from(mut self, earlier: Self) -> Self {
        for (memory, mut earlier) in self.memories.iter_mut().zip(earlier.memories) {
            std::mem::swap(&mut memory.workspace, &mut earlier.workspace);
            *memory = earlier;
        }
        self
    }

    /// The dialects.
    pub fn set(&self) -> &DialectSet {
        &self.set
    }

    /// Sets the session that results name.
    pub fn set_session(&mut self, session: &str) {
        self.memories.iter_mut().for_each(|memory| session.clone_into(&mut memory.session));
    }

    /// Begins a call; none if it is a native one. `is_tool` knows the native tools, those of servers among them.
    pub fn begin<'a>(&self, asked: AskedCall<'a>, is_tool: IsTool<'_>) -> Option<SpokenCall<'a>> {
        let speaker = self.set.speaker(asked.tool, is_tool)?;
        let entered = self.set.dialects()[speaker].enter(asked.tool, asked.args, &self.memories[speaker]);
        Some(SpokenCall { asked, speaker, entered })
    }

    /// Takes the reply to the native call. Gives what the model is shown, or nothing if another native call follows.
    pub fn answer(&mut self, call: &mut SpokenCall<'_>, reply: &Reply) -> Option<ShownResult> {
        let (dialect, memory) = (self.set.dialects()[call.speaker], &mut self.memories[call.speaker]);
        let entered = match &call.entered {
            Ok(entered) => entered,
            Err(fault) => {
                return Some(dialect.fail(&call.asked, &recorded_fault(call.asked.tool, fault, reply), memory));
            }
        };
        match dialect.next(entered, reply, memory) {
            Ok(Some(next)) => {
                call.entered = Ok(next);
                None
            }
            Ok(None) => Some(dialect.leave(entered, reply, memory)),
            Err(fault) => {
                let args = entered.arguments();
                let shown = dialect.fail(&AskedCall { args: &args, ..call.asked }, &fault, memory);
                call.entered = Err(fault);
                Some(shown)
            }
        }
    }

    /// What the model is shown of a call that failed for a reason that only the front end knows.
    pub fn fail(&self, id: &str, tool: &str, error: &ToolError, is_tool: IsTool<'_>) -> Option<ShownResult> {
        let speaker = self.set.speaker(tool, is_tool)?;
        let (asked, fault) = (AskedCall { id, tool, args: &json!({}) }, EnterFault::Refused(error.clone()));
        Some(self.set.dialects()[speaker].fail(&asked, &fault, &self.memories[speaker]))
    }
}

/// The fault as the reply has it: where refusing failed too, because nothing can be recorded, that is what the model has to know.
fn recorded_fault(tool: &str, fault: &EnterFault, reply: &Reply) -> EnterFault {
    let expected = native_error(tool, fault).code;
    match &reply.error {
        Some(error) if error.code != expected => EnterFault::Refused(error.clone()),
        _ => fault.clone(),
    }
}

/// A fault in the native words, for the record.
fn native_error(tool: &str, fault: &EnterFault) -> ToolError {
    match fault {
        EnterFault::UnknownTool => ToolError::new(ErrorCode::UnknownTool, format!("There is no tool `{tool}`.")),
        EnterFault::Arguments(faults) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            ToolError::invalid_args(format!("The arguments of `{tool}` don't fit: {}.", faults.join("; ")))
        }
        EnterFault::Refused(error) => error.clone(),
    }
}

/// The id of a call's native call: the first has the call's own.
pub fn step_id(call: &str, step: usize) -> String {
    if step == 1 { call.to_owned() } else { format!("{call}_{step}") }
}

/// The call that a native call of this id may be a later step of.
pub fn asked_id(step: &str) -> &str {
    match step.rsplit_once('_') {
        Some((call, number))
            if !number.is_empty() && number.len() < 3 && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            call
        }
        _ => step,
    }
}
