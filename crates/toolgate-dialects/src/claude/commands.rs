//! Running commands.

use serde_json::json;
use toolgate_contract::{ErrorCode, Right, ToolError};

use super::files::REMINDER;
use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult};
use crate::expression;
use crate::fence::without_tags;
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::{Boolean, Integer, Text};
use crate::parameter::{Arguments, Parameter};
use crate::shell::{MOST_WAIT_MS, changed_directory, command_notes, seconds};

/// Milliseconds that a command may take where the model says nothing.
const DEFAULT_TIMEOUT: i64 = 120_000;
/// The most milliseconds that a command may take in the foreground.
const MOST_FOREGROUND: i64 = 600_000;
/// Bytes of long output that are shown.
const PREVIEW_BYTES: usize = 2048;
/// Milliseconds that an output is waited for where the model says nothing.
const DEFAULT_WAIT: i64 = 30_000;
/// The tags around output: what is left of a long one, and what a command in the background has printed.
const PERSISTED: &str = "persisted-output";
const OUTPUT: &str = "output";
/// An expression that nothing matches: whoever waits for it waits for the end.
const NEVER: &str = r"[^\s\S]";

pub(super) const TASK_STOP: &[Parameter] = &[
    Parameter::optional("task_id", Text, "The command's id"),
    Parameter::optional("shell_id", Text, "The command's id, as it was called before"),
];
pub(super) const TASK_OUTPUT: &[Parameter] = &[
    Parameter::required("task_id", Text, "The command's id"),
    Parameter::optional("block", Boolean, "Wait until it has ended; on unless switched off"),
    Parameter::optional("timeout", Integer(0, 600_000), "How long to wait, in milliseconds"),
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
    bash(returned, streams.map(str::to_owned), "(Bash completed with no output)", true)
}

/// Version 2.0 shows the error stream first, where a command failed.
pub(super) fn leave_bash_2_0(returned: &mut Returned<'_>) -> ShownResult {
    let (stdout, stderr) = (returned.text("stdout").to_owned(), returned.text("stderr").to_owned());
    let failed = returned.field("exit_code").as_i64().is_some_and(|code| code != 0);
    let streams = match failed && !stdout.is_empty() && !stderr.is_empty() {
        true => [format!("{}\n\n{stdout}", stderr.trim_end()), String::new()],
        false => [stdout, stderr],
    };
    bash(returned, streams, "", false)
}

fn bash(returned: &mut Returned<'_>, streams: [String; 2], nothing: &str, is_persisted: bool) -> ShownResult {
    if returned.field("running").as_bool() == Some(true) {
        let id = returned.text("process").to_owned();
        let started = format!(
            "Command running in background with ID: {id}. Output is being written to: {id}. {}",
            "This ID shows what it prints from here on, and stops it."
        );
        // What it has printed by now is told here alone.
        return ShownResult::ok(with_output(&started, &joined(&streams, OUTPUT)));
    }
    let mut output = stored_output(returned, &joined(&streams, PERSISTED), is_persisted);
    output += &command_notes(returned).iter().map(|note| format!("\n{note}")).collect::<String>();
    if returned.field("timed_out").as_bool() == Some(true) {
        let limit = seconds(returned.args.integer("timeout").unwrap_or(DEFAULT_TIMEOUT));
        return ShownResult::error(with_output(&format!("Exit code 143\nCommand timed out after {limit}s"), &output));
    }
    match returned.field("exit_code").as_i64() {
        Some(0) | None => {
            let directory = changed_directory(returned.args.word("command"), returned.memory);
            output += &enter_directory(returned.memory, directory);
            let output = output.trim_start_matches('\n');
            ShownResult::ok(if output.trim().is_empty() { nothing } else { output })
        }
        Some(code) => ShownResult::error(with_output(&format!("Exit code {code}"), &output)),
    }
}

/// Output that was cut names where all of it is. Since 2.1 such output is shown by its beginning.
fn stored_output(returned: &Returned<'_>, output: &str, is_persisted: bool) -> String {
    let Some(artifact) = returned.artifact() else { return output.to_owned() };
    if !is_persisted {
        return format!("{output}\nThe full output is the artifact {artifact}.");
    }
    let stored = returned.reply.artifacts.refs.iter().find(|stored| stored.id == artifact);
    let size = kilobytes(stored.map_or(output.len() as u64, |stored| stored.bytes));
    let preview = &output[..output.floor_char_boundary(PREVIEW_BYTES)];
    let preview = preview.rsplit_once('\n').map_or(preview, |(whole, _)| whole);
    format!(
        "<{PERSISTED}>\nOutput too large ({size}). Full output can be read with the tool `artifact`: {artifact}\n\n\
         Preview (first 2KB):\n{preview}\n...\n</{PERSISTED}>"
    )
}

/// A size as this client shows it.
pub(super) fn kilobytes(bytes: u64) -> String {
    format!("{:.1}KB", bytes as f64 / 1024.0)
}

/// Both streams, without the tags of this client and the one that is put around them.
fn joined(streams: &[String], around: &str) -> String {
    let parts: Vec<&str> = streams.iter().map(|stream| stream.trim_end()).filter(|stream| !stream.is_empty()).collect();
    without_tags(&parts.join("\n"), &[REMINDER, around])
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

/// Looks which command it is, since the result says so, and stops it.
pub(super) fn enter_stop(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    task(args)?;
    let stop = |answered: &Answered<'_>| match answered.reply.error {
        Some(_) => Ok(None),
        None => Ok(Some(NativeCall::new("process", json!({ "action": "stop", "process": task(answered.args)? })))),
    };
    Ok(NativeCall { then: Some(stop), ..NativeCall::new("process", json!({ "action": "list" })) })
}

/// The id of the command that was stopped, and its line.
fn stopped(returned: &Returned<'_>) -> (String, String) {
    let id = task(returned.args).unwrap_or_default().to_owned();
    let listed = returned.earlier.first().and_then(|reply| reply.payload.as_ref());
    let processes = listed.and_then(|listed| listed["processes"].as_array()).into_iter().flatten();
    let command = processes.filter(|process| process["process"] == id.as_str()).find_map(|one| one["command"].as_str());
    (id, command.unwrap_or_default().to_owned())
}

pub(super) fn leave_stop(returned: &mut Returned<'_>) -> ShownResult {
    let (id, command) = stopped(returned);
    let message = format!("Successfully stopped task: {id} ({command})");
    let shown = json!({ "message": message, "task_id": id, "task_type": "local_bash", "command": command });
    ShownResult::ok(shown.to_string())
}

pub(super) fn leave_kill(returned: &mut Returned<'_>) -> ShownResult {
    let (id, command) = stopped(returned);
    let message = format!("Successfully killed shell: {id} ({command})");
    ShownResult::ok(json!({ "message": message, "shell_id": id }).to_string())
}

pub(super) fn enter_task_output(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let (process, timeout) = (args.word("task_id"), args.integer("timeout").unwrap_or(DEFAULT_WAIT));
    Ok(NativeCall::new(
        "process",
        match args.flag("block").unwrap_or(true) {
            true => json!({ "action": "wait", "process": process, "pattern": NEVER, "timeout_ms": timeout }),
            false => json!({ "action": "read", "process": process }),
        },
    ))
}

pub(super) fn leave_task_output(returned: &mut Returned<'_>) -> ShownResult {
    let is_running = returned.is("running");
    let retrieval = match (is_running, returned.args.flag("block").unwrap_or(true)) {
        (false, _) => "success",
        (true, true) => "timeout",
        (true, false) => "not_ready",
    };
    let mut parts = vec![
        format!("<retrieval_status>{retrieval}</retrieval_status>"),
        format!("<task_id>{}</task_id>", returned.args.word("task_id")),
        "<task_type>local_bash</task_type>".to_owned(),
        format!("<status>{}</status>", if is_running { "running" } else { "completed" }),
    ];
    parts.extend(returned.field("exit_code").as_i64().map(|code| format!("<exit_code>{code}</exit_code>")));
    let output = joined(&[returned.text("stdout").to_owned(), returned.text("stderr").to_owned()], OUTPUT);
    if !output.is_empty() {
        parts.push(format!("<{OUTPUT}>\n{output}\n</{OUTPUT}>"));
    }
    ShownResult::ok(parts.join("\n\n"))
}

/// What a command in the background has printed, where the model reads it like a file.
pub(super) fn printed(returned: &Returned<'_>) -> ShownResult {
    ShownResult::ok(joined(&[returned.text("stdout").to_owned(), returned.text("stderr").to_owned()], OUTPUT))
}

pub(super) fn enter_output(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    expression::given(args, "filter", false)?;
    Ok(NativeCall::new("process", json!({ "action": "read", "process": args.word("bash_id") })))
}

pub(super) fn leave_output(returned: &mut Returned<'_>) -> ShownResult {
    let status = if returned.field("running").as_bool() == Some(true) { "running" } else { "completed" };
    let filter = expression::given(returned.args, "filter", false).ok().flatten();
    let mut parts = vec![format!("<status>{status}</status>")];
    parts.extend(returned.field("exit_code").as_i64().map(|code| format!("<exit_code>{code}</exit_code>")));
    for name in ["stdout", "stderr"] {
        let lines = returned.text(name).trim_end().lines();
        let lines = lines.filter(|line| filter.as_ref().is_none_or(|filter| filter.is_match(line)));
        let text = without_tags(&lines.collect::<Vec<_>>().join("\n"), &[REMINDER, "stdout", "stderr"]);
        if !text.is_empty() {
            parts.push(format!("<{name}>\n{text}\n</{name}>"));
        }
    }
    ShownResult::ok(parts.join("\n\n"))
}
