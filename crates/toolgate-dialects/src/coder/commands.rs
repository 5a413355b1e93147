//! Running commands.

use serde_json::json;

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::json_result::object;
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::shell::{MOST_WAIT_MS, command_notes};

pub(super) fn enter_bash(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("shell", json!({ "command": args.word("command"), "yield_ms": MOST_WAIT_MS })))
}

/// A command that took too long has exit code 124, and isn't ok.
pub(super) fn leave_bash(returned: &mut Returned<'_>) -> ShownResult {
    let code = returned.number("exit_code");
    let mut result = json!({
        "ok": code == 0,
        "command": returned.args.word("command"),
        "exit_code": code,
        "stdout": returned.field("stdout"),
        "stderr": returned.field("stderr"),
        "truncated": returned.reply.truncated.is_some(),
        "duration_ms": returned.field("duration_ms"),
    });
    if let Some(artifact) = returned.artifact() {
        result["artifact"] = artifact.into();
    }
    let notes = command_notes(returned);
    if !notes.is_empty() {
        result["notes"] = notes.into();
    }
    object(result)
}
