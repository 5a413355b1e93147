//! `shell`: runs a command in the sandbox. Policy has judged the effects that were read from the command line, and the kernel
//! confines the command to them. Every command is a process of the session: one that runs longer than its call waits keeps
//! running, and the tool `process` continues with it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    ApplyMode, DeniedAccess, Effect, ErrorCode, Hands, Permission, ProcessExit, ProcessGuard, ProcessHandle, Risk,
    SettledChanges, SideEffect, Spec, StopReason, Stream, Streams, TerminalSize, Tool, ToolError,
};

use crate::support::command_result::{CommandResult, ended};
use crate::support::excerpt::{Excerpt, excerpt};

/// Runs a command.
pub struct ShellTool;

/// The default timeout of a command, and the longest one of a command that its call waits for.
const DEFAULT_TIMEOUT_SECONDS: u64 = 120;
const MAX_TIMEOUT_SECONDS: u64 = 600;

/// How long a call waits by default for its command to end.
const DEFAULT_YIELD: Duration = Duration::from_secs(10);

/// Seconds that a call may take in addition to its command.
const MARGIN_SECONDS: u64 = 20;

/// Bytes at the end of each stream that are shown of a command that keeps running.
const SHOWN_BYTES: u64 = 16 * 1024;

/// What to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// A command line.
    command: String,
    /// Relative to the workspace.
    #[serde(default = "here")]
    workdir: String,
    /// Until it is stopped: 120 by default, 600 at most; with `background` or `tty` an hour.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout_seconds: Option<u64>,
    /// To wait for its end, 10000 by default.
    #[serde(default)]
    #[schemars(range(max = 600_000))]
    yield_ms: Option<u64>,
    /// Returns at once; others see its changes while it runs.
    #[serde(default)]
    background: bool,
    /// Keeps it open for `process`.
    #[serde(default)]
    stdin: bool,
    /// A terminal, for programs that draw or ask.
    #[serde(default)]
    tty: bool,
    /// Lines of the terminal.
    #[serde(default = "usual_rows")]
    #[schemars(range(min = 1, max = 500))]
    rows: u16,
    /// Characters in a line.
    #[serde(default = "usual_columns")]
    #[schemars(range(min = 1, max = 500))]
    columns: u16,
    /// Only shows what would change; a person can apply exactly that.
    #[serde(default)]
    rehearse: bool,
}

fn here() -> String {
    ".".into()
}

fn usual_rows() -> u16 {
    TerminalSize::default().rows
}

fn usual_columns() -> u16 {
    TerminalSize::default().columns
}

/// How it ended, or that it is still running.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// 0 is success, 124 means that it timed out, null that it is still running.
    exit_code: Option<i32>,
    /// What it wrote to its standard output, or to its terminal. Of a command that is still running, the end of it.
    stdout: String,
    /// What it wrote to its standard error.
    stderr: String,
    /// How long it took, in milliseconds. Null while it is running.
    duration_ms: Option<u64>,
    /// Whether it was stopped because it timed out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    /// Whether it was stopped because it wrote more output than is allowed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output_limit: bool,
    /// Whether it is still running.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    running: bool,
    /// The handle of the running process, for the tool `process`.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    /// Where to continue reading its standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Where to continue reading its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_stderr_offset: Option<u64>,
    /// What its terminal shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    screen: Option<String>,
    /// What it changed in the workspace; of a rehearsal, what it would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<SettledChanges>,
    /// What the sandbox denied it, if it failed, as a possible reason. Also hidden files that it opened.
    // The gate fills this in, once it is known whether the missing rights are granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied: Vec<DeniedAccess>,
}

impl Tool for ShellTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "shell",
        version: "1.1.0",
        description: "Run a command with bash in the workspace, confined to the system, the workspace, configured \
                      roots and allowed hosts; `/tmp` and home are empty, and what it writes there is gone when it \
                      ends. Its standard input is empty without `stdin` or `tty`. What takes longer than \
                      `yield_ms`, or runs in the `background`, goes on until the session ends: use `process` for \
                      it.",
        risk: Risk::Medium,
        permissions: &[Permission::FsRead, Permission::ProcExec],
        side_effects: &[SideEffect::StartsProcesses, SideEffect::WritesFiles],
        parallel: false,
    };

    // Without these, no command line runs at all.
    const REQUIRED_COMMANDS: &'static [&'static str] = &["/bin/bash"];

    const LONGEST: Option<Duration> = Some(Duration::from_secs(MAX_TIMEOUT_SECONDS + MARGIN_SECONDS));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        let run = Effect::Run { command: args.command.clone(), workdir: args.workdir.clone() };
        vec![Effect::read(&args.workdir), run]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let timeout = timeout(&args, hands.longest())?;
        let wait = yield_time(&args, timeout, hands.waits());
        let attached = hands.start(&args.command, &args.workdir, streams(&args), apply_mode(&args), timeout).await?;
        // If the call waits as long as the timeout, the process is about to end then, so the call waits for that.
        let wait = if wait == timeout { Duration::MAX } else { wait };
        match ended(attached.process(), wait).await {
            Some(end) => finished(&attached, end, hands),
            None => match attached.detach() {
                Ok(process) => still_running(process.as_ref(), hands),
                Err(attached) => match ended(attached.process(), Duration::MAX).await {
                    Some(end) => finished(&attached, end, hands),
                    None => Err(ToolError::internal("A process that had ended had no end.")),
                },
            },
        }
    }
}

/// The timeout of the command. One that no call waits for may take longer.
fn timeout(args: &Args, detached: Duration) -> Result<Duration, ToolError> {
    let most = if args.background || args.tty { detached.as_secs() } else { MAX_TIMEOUT_SECONDS };
    let default = if args.background || args.tty { most } else { DEFAULT_TIMEOUT_SECONDS };
    let wanted = args.timeout_seconds.unwrap_or(default);
    match (1..=most).contains(&wanted) {
        true => Ok(Duration::from_secs(wanted)),
        false => Err(ToolError::new(
            ErrorCode::InvalidArgs,
            format!("`timeout_seconds` is {wanted}; for this command it can be 1 to {most}."),
        )),
    }
}

/// How long the call waits for the command to end. Without `yield_ms` it waits until the timeout if the caller `waits`.
fn yield_time(args: &Args, timeout: Duration, waits: bool) -> Duration {
    match (args.background, args.yield_ms) {
        (true, _) => Duration::ZERO,
        (false, Some(yield_ms)) => timeout.min(Duration::from_millis(yield_ms)),
        (false, None) if waits => timeout,
        (false, None) => timeout.min(DEFAULT_YIELD),
    }
}

fn streams(args: &Args) -> Streams {
    match (args.tty, args.stdin) {
        (true, _) => Streams::Terminal(TerminalSize { rows: args.rows, columns: args.columns }),
        (false, true) => Streams::Input,
        (false, false) => Streams::Output,
    }
}

/// A command that runs beside other calls, or with a person, has to see their changes, and they have to see its changes.
fn apply_mode(args: &Args) -> ApplyMode {
    match (args.rehearse, args.background || args.tty || args.stdin) {
        (true, _) => ApplyMode::OnCommit,
        (false, true) => ApplyMode::InPlace,
        (false, false) => ApplyMode::AtEnd,
    }
}

/// The command ended while its call waited for it.
fn finished(attached: &ProcessGuard, end: ProcessExit, hands: &dyn Hands) -> Result<Output, ToolError> {
    let process = attached.process();
    let ended = CommandResult::of(process, end, hands)?;
    Ok(Output {
        exit_code: Some(ended.exit_code),
        stdout: ended.stdout,
        stderr: ended.stderr,
        duration_ms: Some(ended.duration_ms),
        timed_out: ended.stopped == Some(StopReason::Time),
        output_limit: ended.stopped == Some(StopReason::Output),
        screen: process.screen().map(|screen| screen.text),
        changes: ended.changes,
        ..Output::default()
    })
}

/// The command keeps running after its call.
fn still_running(process: &dyn ProcessHandle, hands: &dyn Hands) -> Result<Output, ToolError> {
    hands.redacted(process);
    let written = { [process.progress().borrow().stdout, process.progress().borrow().stderr] };
    let last = |stream: Stream, to: u64| excerpt(process, stream, to.saturating_sub(SHOWN_BYTES), SHOWN_BYTES as usize);
    let Excerpt { text: stdout, next: next_offset } = last(Stream::Stdout, written[0])?;
    let Excerpt { text: stderr, next: next_stderr_offset } = last(Stream::Stderr, written[1])?;
    process.have_read([next_offset, next_stderr_offset]);
    Ok(Output {
        stdout,
        stderr,
        running: true,
        process: Some(process.facts().id.clone()),
        next_offset: Some(next_offset),
        next_stderr_offset: (!process.facts().terminal).then_some(next_stderr_offset),
        screen: process.screen().map(|screen| screen.text),
        ..Output::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_waits_for_its_yield_time_or_as_long_as_its_caller_does() {
        let seconds = Duration::from_secs;
        for (args, waits, expected) in [
            (r#"{"command":"a"}"#, false, seconds(10)),
            (r#"{"command":"a"}"#, true, seconds(120)),
            (r#"{"command":"a","yield_ms":3000}"#, true, seconds(3)),
            (r#"{"command":"a","yield_ms":600000}"#, false, seconds(120)),
            (r#"{"command":"a","background":true}"#, true, Duration::ZERO),
        ] {
            let parsed: Args = serde_json::from_str(args).unwrap();
            assert_eq!(yield_time(&parsed, seconds(120), waits), expected, "{args} {waits}");
        }
    }
}
