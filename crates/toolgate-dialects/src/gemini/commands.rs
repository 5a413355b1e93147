//! Running commands.

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, ToolError};

use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult};
use crate::fence::without_tags;
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::shell::{MOST_WAIT_MS, both_streams, command_notes};

/// The tag around what comes from outside.
pub(super) const UNTRUSTED: &str = "untrusted_context";
/// Lines of a process's output where the model says nothing.
const DEFAULT_LINES: i64 = 100;

/// A text that the model must not take for instructions.
pub(super) fn untrusted(text: &str) -> String {
    format!("<{UNTRUSTED}>\n{}\n</{UNTRUSTED}>", without_tags(text, &[UNTRUSTED]))
}

pub(super) fn enter_shell(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let background = args.is("is_background");
    let call = json!({
        "command": args.word("command"),
        "workdir": memory.native_or_here(args.text("dir_path")),
        "background": background,
        // This client waits for a command's end.
        "yield_ms": (!background).then_some(MOST_WAIT_MS),
    });
    Ok(NativeCall { justification: args.text("description").map(str::to_owned), ..NativeCall::new("shell", call) })
}

pub(super) fn leave_shell(returned: &mut Returned<'_>) -> ShownResult {
    if returned.is("running") {
        let process = returned.text("process").to_owned();
        let number = returned.memory.number(&process);
        return ShownResult::ok(format!(
            "Command moved to background (PID: {number}). Output hidden. `read_background_output` shows it."
        ));
    }
    let output = both_streams(returned);
    let output = if output.trim().is_empty() { "(empty)" } else { output.trim_end() };
    let mut lines = vec![format!("Output: {output}")];
    lines.extend(returned.artifact().map(|artifact| {
        format!("Output too large. A part in the middle isn't shown. For full output see: the artifact {artifact}")
    }));
    lines.extend(returned.is("timed_out").then(|| "The command took too long and was stopped.".to_owned()));
    lines.extend(command_notes(returned));
    let code = returned.field("exit_code").as_i64().filter(|code| *code != 0);
    lines.extend(code.map(|code| format!("Exit Code: {code}")));
    ShownResult::ok(untrusted(&lines.join("\n")))
}

pub(super) fn enter_list(_: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("process", json!({ "action": "list" })))
}

pub(super) fn leave_list(returned: &mut Returned<'_>) -> ShownResult {
    let processes = returned.list("processes").to_vec();
    if processes.is_empty() {
        return ShownResult::ok("No background processes found.");
    }
    let line = |process: &Value| {
        let text = |name: &str| process[name].as_str().unwrap_or_default();
        let number = returned.memory.number(text("process"));
        let state = match (process["running"].as_bool(), process["exit_code"].as_i64()) {
            (Some(true), _) => "RUNNING".to_owned(),
            (_, Some(code)) => format!("EXITED (exit code {code})"),
            _ => "EXITED".to_owned(),
        };
        format!("- [PID {number}] {state}: `{}`", text("command"))
    };
    let lines: Vec<String> = processes.iter().map(line).collect();
    ShownResult::ok(lines.join("\n"))
}

pub(super) fn enter_output(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let process = process(args, memory)?;
    let call = match args.integer("delay_ms").filter(|delay| *delay > 0) {
        Some(delay) => {
            json!({ "action": "wait", "process": process, "timeout_ms": delay.min(MOST_WAIT_MS), "offset": 0, "stderr_offset": 0 })
        }
        None => json!({ "action": "read", "process": process, "offset": 0, "stderr_offset": 0 }),
    };
    Ok(NativeCall { then: Some(read_on), ..NativeCall::new("process", call) })
}

fn process<'a>(args: &Arguments, memory: &'a DialectMemory) -> Result<&'a str, EnterFault> {
    let number = args.integer("pid").unwrap_or_default();
    memory.process(number).ok_or_else(|| {
        ToolError::new(
            ErrorCode::NotFound,
            format!("Background process history lookup failed: there is none with the PID {number}"),
        )
        .with_hint("Use `list_background_processes` to see which there are.")
        .into()
    })
}

/// A long output comes in several pieces.
fn read_on(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    if answered.reply.payload.as_ref().is_none_or(|page| page["has_more"] != true) {
        return Ok(None);
    }
    let process = process(answered.args, answered.memory)?;
    let call = json!({ "action": "read", "process": process });
    Ok(Some(NativeCall { then: Some(read_on), ..NativeCall::new("process", call) }))
}

pub(super) fn leave_output(returned: &mut Returned<'_>) -> ShownResult {
    let pages = returned.earlier.iter().chain([returned.reply]).filter_map(|reply| reply.payload.as_ref());
    let log: String =
        pages.flat_map(|page| ["stdout", "stderr"].map(|name| page[name].as_str().unwrap_or_default())).collect();
    let wanted = returned.args.integer("lines").unwrap_or(DEFAULT_LINES);
    let lines: Vec<&str> = log.lines().collect();
    let skipped = lines.len().saturating_sub(usize::try_from(wanted).unwrap_or(usize::MAX));
    match lines[skipped..].join("\n") {
        end if end.trim().is_empty() => ShownResult::ok("Log is empty."),
        end => ShownResult::ok(untrusted(&end)),
    }
}
