//! Running commands.

use serde_json::json;
use toolgate_contract::{ErrorCode, Right, ToolError};

use super::exec_output::{chunk, noted_output, total_lines, wall_time};
use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::shell::{MOST_WAIT_MS, command_line, is_our_shell, seconds};

/// Milliseconds that a call waits for a command where the model says nothing.
const DEFAULT_YIELD: i64 = 10_000;
/// The bounds of that wait.
const YIELD_BOUNDS: (i64, i64) = (250, 30_000);
/// The bounds of a wait for output alone.
const POLL_BOUNDS: (i64, i64) = (5_000, 300_000);
const CTRL_C: &str = "\u{3}";

pub(super) fn enter_exec(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    if let Some(shell) = args.text("shell").filter(|shell| !is_our_shell(shell)) {
        return Err(ToolError::invalid_args(format!("There is no shell `{shell}` here; commands run in bash.")).into());
    }
    if let Some(patch) = super::files::heredoc_patch(args.word("cmd")) {
        return super::files::apply_patch(patch);
    }
    let wait = args.integer("yield_time_ms").unwrap_or(DEFAULT_YIELD).clamp(YIELD_BOUNDS.0, YIELD_BOUNDS.1);
    let call = json!({
        "command": args.word("cmd"), "workdir": workdir(args, memory), "yield_ms": wait, "tty": args.is("tty"),
    });
    Ok(with_rights(NativeCall::new("shell", call), args))
}

fn workdir(args: &Arguments, memory: &DialectMemory) -> String {
    args.text("workdir").filter(|path| !path.is_empty()).map_or_else(|| ".".to_owned(), |path| memory.native(path))
}

/// Rights beyond the sandbox are asked for, with the model's reason. A rule that it suggests is for the person to see.
fn with_rights(mut native: NativeCall, args: &Arguments) -> NativeCall {
    native.justification = args.text("justification").map(str::to_owned);
    if args.text("sandbox_permissions") == Some("require_escalated") {
        native.requested.push(Right::Unsandboxed);
    }
    if let Some(rule) = args.texts("prefix_rule").filter(|rule| !rule.is_empty()) {
        let suggested = format!("It suggests to allow commands that begin with `{}`.", rule.join(" "));
        native.justification = Some([native.justification.unwrap_or_default(), suggested].join(" ").trim().to_owned());
    }
    native
}

pub(super) fn leave_exec(returned: &mut Returned<'_>) -> ShownResult {
    if returned.field("applied").as_bool().is_some() {
        let patched = super::files::patched(returned);
        return ShownResult::ok(format!("Wall time: {:.4} seconds\nOutput:\n{patched}", wall_time(returned)));
    }
    let state = state(returned);
    ShownResult::ok(chunk(returned, &state))
}

/// Whether it goes on or how it ended.
fn state(returned: &mut Returned<'_>) -> String {
    if returned.field("running").as_bool() == Some(true) {
        let process = returned.text("process").to_owned();
        return format!("Process running with session ID {}", returned.memory.number(&process));
    }
    format!("Process exited with code {}", exit_code(returned))
}

fn exit_code(returned: &Returned<'_>) -> i64 {
    returned.field("exit_code").as_i64().unwrap_or_default()
}

pub(super) fn enter_stdin(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let number = args.integer("session_id").unwrap_or_default();
    let process = memory.process(number).ok_or_else(|| {
        ToolError::new(ErrorCode::NotFound, format!("write_stdin failed: Unknown process id {number}"))
            .with_hint("Sessions have the numbers that `exec_command` told, in this conversation alone.")
    })?;
    let chars = args.text("chars").unwrap_or_default();
    let wait = |(least, most): (i64, i64), default| args.integer("yield_time_ms").unwrap_or(default).clamp(least, most);
    let call = match chars {
        "" => json!({ "action": "wait", "process": process, "timeout_ms": wait(POLL_BOUNDS, POLL_BOUNDS.0) }),
        CTRL_C => {
            json!({ "action": "write", "process": process, "keys": ["ctrl-c"], "timeout_ms": wait(YIELD_BOUNDS, YIELD_BOUNDS.0) })
        }
        text => {
            json!({ "action": "write", "process": process, "text": text, "timeout_ms": wait(YIELD_BOUNDS, YIELD_BOUNDS.0) })
        }
    };
    Ok(NativeCall::new("process", call))
}

pub(super) fn leave_stdin(returned: &mut Returned<'_>) -> ShownResult {
    let number = returned.args.integer("session_id").unwrap_or_default();
    let state = match returned.field("running").as_bool() {
        Some(true) => format!("Process running with session ID {number}"),
        _ => format!("Process exited with code {}", exit_code(returned)),
    };
    ShownResult::ok(chunk(returned, &state))
}

pub(super) fn enter_shell(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let words = args.texts("command").unwrap_or_default();
    if let [program, patch] = words[..]
        && program == "apply_patch"
    {
        return super::files::apply_patch(patch);
    }
    to_its_end(command_line(&words), args, memory)
}

pub(super) fn enter_shell_command(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    to_its_end(args.word("command").to_owned(), args, memory)
}

/// A command that is waited for.
fn to_its_end(command: String, args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let limit = args.integer("timeout_ms").map(seconds);
    let call = json!({
        "command": command, "workdir": workdir(args, memory), "timeout_seconds": limit, "yield_ms": MOST_WAIT_MS,
    });
    Ok(with_rights(NativeCall::new("shell", call), args))
}

pub(super) fn leave_shell(returned: &mut Returned<'_>) -> ShownResult {
    let (output, code) = ended(returned);
    let seconds = (wall_time(returned) * 10.0).round() / 10.0;
    let text = json!({ "output": output, "metadata": { "exit_code": code, "duration_seconds": seconds } });
    ShownResult::ok(text.to_string())
}

pub(super) fn leave_shell_command(returned: &mut Returned<'_>) -> ShownResult {
    let (output, code) = ended(returned);
    let total = match &returned.reply.truncated {
        Some(_) => format!("Total output lines: {}\n", total_lines(returned, &output)),
        None => String::new(),
    };
    ShownResult::ok(format!(
        "Exit code: {code}\nWall time: {:.1} seconds\n{total}Output:\n{output}",
        wall_time(returned)
    ))
}

/// Output and exit code of a command that was waited for. One that took too long has 124, and says so first.
fn ended(returned: &Returned<'_>) -> (String, i64) {
    let output = match returned.field("applied").as_bool() {
        Some(_) => super::files::patched(returned),
        None => noted_output(returned),
    };
    if returned.field("timed_out").as_bool() == Some(true) {
        let limit = returned.args.integer("timeout_ms").unwrap_or_else(|| (wall_time(returned) * 1000.0) as i64);
        return (format!("command timed out after {limit} milliseconds\n{output}"), 124);
    }
    (output, exit_code(returned))
}
