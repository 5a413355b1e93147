//! Find: the tool with the call's name. Prepare: the arguments, validated against the schema and decoded once, and the effects,
//! with each path resolved once.

use std::sync::Arc;

use toolgate_contract::{Effect, PreparedCall, Right, ToolError};

use super::prepared::Prepared;
use super::{Request, Stopped};
use crate::gate::call_record::CallRecord;
use crate::gate::refusals::only_declared;
use crate::registry::RegisteredTool;

/// A call whose tool was found.
pub(super) struct Found<'a> {
    record: Box<CallRecord<'a>>,
    tool: Arc<RegisteredTool>,
}

impl<'a> Found<'a> {
    /// Finds the tool.
    pub(super) fn find(mut record: Box<CallRecord<'a>>) -> Result<Self, Stopped<'a>> {
        let tool = match record.gate.find(&record.call.name, Some(record.session)) {
            Ok(tool) => tool,
            Err(error) => return Err(record.stopped(error)),
        };
        record.tool = Some(Arc::clone(&tool));
        record.timings.done("find");
        Ok(Self { record, tool })
    }

    /// Decodes the arguments and resolves what the call will touch.
    pub(super) fn prepare(mut self, request: Request) -> Result<Prepared<'a>, Stopped<'a>> {
        match self.locate(&request) {
            Ok(call) => Ok(Prepared { record: self.record, tool: self.tool, call, request }),
            Err(error) => Err(self.record.stopped(error)),
        }
    }

    fn locate(&mut self, request: &Request) -> Result<Box<dyn PreparedCall>, ToolError> {
        let record = &mut self.record;
        let prepared = self.tool.prepare(&record.call)?;
        record.timings.done("validate");
        let effects = [prepared.effects(), request.further().to_vec()].concat();
        let stated = only_declared(effects, self.tool.declaration())?;
        record.effects = record.gate.parts.files.locate(stated)?.into();
        record.wider = requested_effects(record)?;
        record.wider.extend_from_slice(request.missing());
        record.timings.done("effects");
        Ok(prepared)
    }
}

/// The rights that the call itself asks for, beyond what its tool states.
fn requested_effects(record: &CallRecord<'_>) -> Result<Vec<Effect>, ToolError> {
    let rights = record.call.requested_permissions.iter();
    rights.filter_map(|right| requested_effect(record, right).transpose()).collect()
}

fn requested_effect(record: &CallRecord<'_>, right: &Right) -> Result<Option<Effect>, ToolError> {
    if matches!(right, Right::Permission(_)) {
        return Ok(None);
    }
    let Some(command) = record.command() else {
        let message = format!("`{}` runs no command, so it can't use the right `{right}`.", record.call.name);
        return Err(ToolError::invalid_args(message));
    };
    match right {
        Right::Permission(_) => Ok(None),
        Right::Connect { host, port } => Ok(Some(Effect::Connect { host: host.clone(), port: *port })),
        Right::Write { path } if is_plain(path) => Ok(Some(Effect::write(path))),
        Right::Write { path } => {
            let message = format!("`{path}` isn't a plain absolute path; write it without `.`, `..` and `//`.");
            Err(ToolError::invalid_args(message))
        }
        Right::Unsandboxed => Ok(Some(Effect::Unsandboxed { command: command.to_owned() })),
    }
}

/// An absolute path in which every component is a name.
fn is_plain(path: &str) -> bool {
    let mut names = path.split('/');
    names.next() == Some("") && names.all(|name| !matches!(name, "" | "." | "..")) && !path.contains('\0')
}
