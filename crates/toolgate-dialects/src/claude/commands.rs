//! Running commands.

use serde_json::json;
use toolgate_contract::{ErrorCode, Right, ToolError};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult, not_here};
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::Text;
use crate::parameter::{Arguments, Parameter};
use crate::shell::{MOST_WAIT_MS, changed_directory, command_notes, seconds};

/// Milliseconds that a command may take where the model says nothing.
const DEFAULT_TIMEOUT: i64 = 120_000;
/// The most milliseconds that a command may take in the foreground.
const MOST_FOREGROUND: i64 = 600_000;

pub(super) const TASK_STOP: &[Parameter] = &[
    Parameter::optional("task_id", Text, "The command's id"),
    Parameter::optional("shell_id", Text, "The command's id, as it was called before"),
];
pub(super) const KILL_SHELL: &[Parameter] = &[Parameter::required("shell_id", Text, "The command's id")];
pub(super) const BASH_OUTPUT: &[Parameter] = &[
    Parameter::required("bash_id", Text, "The command's id"),
    Parameter::optional("filter", Text, "Show only lines that match this regular expression"),
];

pub(super) fn enter_bash(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let background = args.is("run_in_background");
    let timeout = args.integer("timeout").unwrap_or(DEFAULT_TIMEOUT);
    if !background && timeout > MOST_FOREGROUND {
        let message =
            format!("`timeout` is {timeout} ms; in the foreground a command may take at most {MOST_FOREGROUND}.");
        return Err(ToolError::invalid_args(message).with_hint("Set `run_in_background`.").into());
    }
    let workdir = if memory.directory.is_empty() { "." } else { &memory.directory };
    let timeout = (!background || args.integer("timeout").is_some()).then(|| seconds(timeout));
    let mut native = NativeCall::new(
        "shell",
        json!({
            "command": args.word("command"),
            "workdir": workdir,
            "timeout_seconds": timeout,
            "background": background,
            "yield_ms": (!background).then_some(MOST_WAIT_MS),
        }),
    );
    native.justification = args.text("description").map(str::to_owned);
    if args.is("dangerouslyDisableSandbox") {
        native.requested.push(Right::Unsandboxed);
    }
    Ok(native)
}

pub(super) fn leave_bash(returned: &mut Returned<'_>) -> ShownResult {
    let streams = [returned.text("stdout"), returned.text("stderr")];
    bash(returned, streams.map(str::to_owned), "(Bash completed with no output)")
}

/// Version 2.0 shows the error stream first, where a command failed.
pub(super) fn leave_bash_2_0(returned: &mut Returned<'_>) -> ShownResult {
    let (stdout, stderr) = (returned.text("stdout").to_owned(), returned.text("stderr").to_owned());
    let failed = returned.field("exit_code").as_i64().is_some_and(|code| code != 0);
    let separate = if failed && !stdout.is_empty() && !stderr.is_empty() { "\n" } else { "" };
    let streams = if failed { [stderr + separate, stdout] } else { [stdout, stderr] };
    bash(returned, streams, "")
}

fn bash(returned: &mut Returned<'_>, streams: [String; 2], nothing: &str) -> ShownResult {
    if returned.field("running").as_bool() == Some(true) {
        let id = returned.text("process").to_owned();
        return ShownResult::ok(format!(
            "Command running in background with ID: {id}. To see what it has printed, or to stop it, use this ID."
        ));
    }
    let mut output = joined(&streams);
    output += &command_notes(returned).iter().map(|note| format!("\n{note}")).collect::<String>();
    output.extend(returned.artifact().map(|artifact| format!("\nThe full output is the artifact {artifact}.")));
    if returned.field("timed_out").as_bool() == Some(true) {
        let limit = seconds(returned.args.integer("timeout").unwrap_or(DEFAULT_TIMEOUT));
        return ShownResult::error(with_output(&format!("Exit code 143\nCommand timed out after {limit}s"), &output));
    }
    match returned.field("exit_code").as_i64() {
        Some(0) | None => {
            let directory = changed_directory(returned.args.word("command"), &returned.memory.directory);
            output += &enter_directory(returned.memory, directory);
            ShownResult::ok(if output.trim().is_empty() { nothing.to_owned() } else { output })
        }
        Some(code) => ShownResult::error(with_output(&format!("Exit code {code}"), &output)),
    }
}

fn joined(streams: &[String]) -> String {
    let parts: Vec<&str> = streams.iter().map(|stream| stream.trim_end()).filter(|stream| !stream.is_empty()).collect();
    parts.join("\n")
}

fn with_output(first: &str, output: &str) -> String {
    if output.trim().is_empty() { first.to_owned() } else { format!("{first}\n{output}") }
}

/// Where the next command starts. Outside of the workspace it can't.
fn enter_directory(memory: &mut DialectMemory, directory: Option<Result<String, ()>>) -> String {
    match directory {
        None => String::new(),
        Some(Ok(directory)) => {
            memory.directory = directory;
            String::new()
        }
        Some(Err(())) => {
            memory.directory.clear();
            format!("\nShell cwd was reset to {}", memory.workspace)
        }
    }
}

fn task(args: &Arguments) -> Result<&str, EnterFault> {
    let given = ["task_id", "shell_id", "bash_id"].iter().find_map(|name| args.text(name));
    given
        .ok_or_else(|| ToolError::new(ErrorCode::InvalidArgs, "Either `task_id` or `shell_id` has to be given.").into())
}

pub(super) fn enter_stop(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("process", json!({ "action": "stop", "process": task(args)? })))
}

pub(super) fn leave_stop(returned: &mut Returned<'_>) -> ShownResult {
    let id = task(returned.args).unwrap_or_default().to_owned();
    ShownResult::ok(json!({ "message": format!("Successfully stopped task: {id}"), "task_id": id }).to_string())
}

pub(super) fn leave_kill(returned: &mut Returned<'_>) -> ShownResult {
    let id = returned.args.word("shell_id");
    ShownResult::ok(json!({ "message": format!("Successfully killed shell: {id}"), "shell_id": id }).to_string())
}

pub(super) fn enter_output(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["filter"])?;
    Ok(NativeCall::new("process", json!({ "action": "read", "process": args.word("bash_id") })))
}

pub(super) fn leave_output(returned: &mut Returned<'_>) -> ShownResult {
    let status = if returned.field("running").as_bool() == Some(true) { "running" } else { "completed" };
    let mut parts = vec![format!("<status>{status}</status>")];
    parts.extend(returned.field("exit_code").as_i64().map(|code| format!("<exit_code>{code}</exit_code>")));
    for name in ["stdout", "stderr"] {
        let text = returned.text(name).trim_end();
        if !text.is_empty() {
            parts.push(format!("<{name}>\n{text}\n</{name}>"));
        }
    }
    ShownResult::ok(parts.join("\n\n"))
}
