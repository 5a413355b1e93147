//! Running a skill's script.

use serde_json::{Value, json};
use toolgate_contract::{ArtifactRef, ErrorCode, ToolError};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::json_result::object;
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::shell::command_notes;

pub(super) fn enter_script(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let path = args.word("relative_path");
    if path.starts_with('/') || path.split('/').any(|name| name == "..") {
        let message = format!("`{path}` leads out of the skill's directory.");
        return Err(ToolError::new(ErrorCode::PathOutsideWorkspace, message)
            .with_hint("Name a script by its path in the skill's directory: scripts/….")
            .into());
    }
    let skill = args.value("skill").cloned().unwrap_or_default();
    let name = skill["name"].as_str().unwrap_or_default();
    let source = skill["source"].as_str().map_or_else(String::new, |source| format!(" ({source})"));
    let call = json!({ "skill": name, "path": path, "args": args.texts("args").unwrap_or_default() });
    let justification = Some(format!("Skill {name}{source} requested script execution"));
    Ok(NativeCall { justification, ..NativeCall::new("script", call) })
}

/// A script that fails is an error of its own type, with what it printed.
pub(super) fn leave_script(returned: &mut Returned<'_>) -> ShownResult {
    let (code, timeout) = (returned.number("exit_code"), returned.is("timed_out"));
    let mut result = json!({
        "ok": code == 0 && !timeout,
        "exit_code": code,
        "stdout": returned.field("stdout"),
        "stderr": returned.field("stderr"),
    });
    for (stream, pointer) in [("stdout", "/stdout"), ("stderr", "/stderr")] {
        if let Some(stored) = stored(returned, pointer) {
            result[format!("{stream}_ref")] = stored.id.as_str().into();
            result[format!("{stream}_sha256")] = stored.sha256.as_str().into();
        }
    }
    if timeout {
        result["timeout"] = true.into();
        result["error"] = error("Timeout", "The script took too long and was stopped.");
    } else if code != 0 {
        result["error"] = error("ExitNonZero", &format!("The script ended with exit code {code}."));
    }
    let notes = command_notes(returned);
    if !notes.is_empty() {
        result["notes"] = notes.into();
    }
    object(result)
}

fn stored<'a>(returned: &'a Returned<'_>, pointer: &str) -> Option<&'a ArtifactRef> {
    returned.reply.artifacts.refs.iter().find(|stored| stored.field.as_deref() == Some(pointer))
}

fn error(kind: &str, message: &str) -> Value {
    json!({ "type": kind, "message": message })
}
