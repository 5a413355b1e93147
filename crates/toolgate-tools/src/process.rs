//! `process`: works with the commands that `shell` left running: lists them, reads their output, waits for it, writes to them,
//! signals and stops them. Nothing is polled: a progress event wakes a call that waits.

mod escape_sequences;
mod keys;
mod output_wait;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Denial, Effect, ErrorCode, Hands, Permission, ProcessExit, ProcessHandle, Risk, SettledChanges, SideEffect, Signal,
    Spec, StopReason, Stream, Tool, ToolError,
};

use self::output_wait::{OutputWait, WaitOutcome};
use crate::support::excerpt::excerpt;

/// Works with running commands.
pub struct ProcessTool;

/// Bytes of each stream in one reply.
const MAX_BYTES: usize = 20 * 1024;

/// How long a call waits by default: with `wait`, and for output after `write` or `signal`.
const DEFAULT_WAIT_MS: u64 = 10_000;
const DEFAULT_OUTPUT_WAIT_MS: u64 = 1_000;
const MAX_WAIT_SECONDS: u64 = 600;

/// Seconds that a call may take in addition to waiting.
const MARGIN_SECONDS: u64 = 20;

/// How long the process may take to read what is written to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProcessAction {
    /// Shows the session's processes.
    List,
    /// Shows what it wrote.
    Read,
    /// Waits for new output, for `pattern`, or for its end; then as `read`.
    Wait,
    /// Writes `text`, then `keys`, then `close`; waits for output; then as `read`.
    Write,
    /// Sends `signal`.
    Signal,
    /// Kills it and everything that it started.
    Stop,
}

/// What to do with which process.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What to do.
    action: ProcessAction,
    /// From the reply of `shell`; not for `list`.
    #[serde(default)]
    process: Option<String>,
    /// Byte of stdout; by default where the last reply ended.
    #[serde(default)]
    offset: Option<u64>,
    /// The same for stderr.
    #[serde(default)]
    stderr_offset: Option<u64>,
    /// Waits until output since you last wrote, or from `offset` on, matches this regular expression.
    #[serde(default)]
    pattern: Option<String>,
    /// By default 10000 with `wait`, 1000 with `write`.
    #[serde(default)]
    #[schemars(range(max = 600_000))]
    timeout_ms: Option<u64>,
    /// End a line with a newline.
    #[serde(default)]
    text: Option<String>,
    /// After the text: `enter`, `ctrl-c`, `up`, `escape`, `f1` …
    #[serde(default)]
    keys: Vec<String>,
    /// Closes its input.
    #[serde(default)]
    close: bool,
    /// The signal to send.
    #[serde(default)]
    signal: Option<Signal>,
    /// Also a terminal's output as it came.
    #[serde(default)]
    raw: bool,
}

/// A process in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProcessSummary {
    /// Its handle.
    process: String,
    /// The command line.
    command: String,
    /// The directory that it was started in.
    workdir: String,
    /// When it was started.
    started: String,
    /// Whether it still runs.
    running: bool,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Whether it has a terminal.
    tty: bool,
    /// Bytes of standard output so far.
    stdout_bytes: u64,
    /// Bytes of standard error so far.
    stderr_bytes: u64,
}

/// The process after the action.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// The session's processes, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Vec<ProcessSummary>>,
    /// Whether it still runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
    /// How it ended: 0 is success, 124 means that it timed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Whether it was stopped because it timed out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    /// Why the wait ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    heard: Option<WaitOutcome>,
    /// The text that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<String>,
    /// What it wrote to its standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    /// What it wrote to its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    /// Output that may be the beginning of a secret. It isn't counted as read, and comes again with the next reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<String>,
    /// Where to continue reading its standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Where to continue reading its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_stderr_offset: Option<u64>,
    /// Whether there is more output to read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_more: bool,
    /// What its terminal shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    screen: Option<String>,
    /// Line and column of the terminal's cursor, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<[u16; 2]>,
    /// What it changed in the workspace, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<SettledChanges>,
    /// Hidden files that it opened, of which it saw decoys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decoys: Vec<String>,
    /// Artifacts with its full output, if that was long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<String>,
}

impl Tool for ProcessTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "process",
        version: "1.0.0",
        description: "Work with commands that `shell` left running: `list` them, `read` what one wrote, `wait` for \
                      output, a pattern or its end, `write` to it, `signal` or `stop` it. Of one with a terminal \
                      you see the screen.",
        risk: Risk::Medium,
        permissions: &[Permission::ProcExec],
        side_effects: &[SideEffect::StartsProcesses, SideEffect::WritesFiles],
        parallel: true,
    };

    const LONGEST: Option<Duration> = Some(Duration::from_secs(MAX_WAIT_SECONDS + MARGIN_SECONDS));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        let process = args.process.clone().unwrap_or_default();
        match args.action {
            ProcessAction::List => vec![Effect::Attend { process: Effect::ALL.into() }],
            ProcessAction::Write => {
                let text = args.text.clone().unwrap_or_default();
                vec![Effect::Attend { process: process.clone() }, Effect::Feed { process, text }]
            }
            _ => vec![Effect::Attend { process }],
        }
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        if args.action == ProcessAction::List {
            return Ok(Output { processes: Some(list(hands)?), ..Output::default() });
        }
        let id = args.process.as_deref().ok_or_else(|| {
            ToolError::invalid_args("`process` is missing: every action but `list` is about one process.")
        })?;
        let process = hands.process(id)?;
        let process = process.as_ref();
        let from = start(&args, process);
        if args.action == ProcessAction::Write {
            process.note_fed();
        }
        let has_offset = args.offset.is_some() || args.stderr_offset.is_some();
        let watched = if args.pattern.is_some() && !has_offset { process.fed_at() } else { from };
        let waiting = OutputWait::new(process, watched, args.pattern.as_deref())?;
        let heard = match args.action {
            ProcessAction::List | ProcessAction::Read => None,
            ProcessAction::Wait => Some(waiting.wait(millis(args.timeout_ms, DEFAULT_WAIT_MS)).await?),
            ProcessAction::Write => {
                write(&args, process, hands).await?;
                Some(waiting.wait(millis(args.timeout_ms, DEFAULT_OUTPUT_WAIT_MS)).await?)
            }
            ProcessAction::Signal => {
                let missing = || ToolError::invalid_args("`signal` is missing: name the signal to send.");
                process.signal(args.signal.ok_or_else(missing)?)?;
                Some(waiting.wait(Duration::from_millis(DEFAULT_OUTPUT_WAIT_MS)).await?)
            }
            ProcessAction::Stop => {
                process.stop().await;
                None
            }
        };
        hands.redacted(process);
        let (heard, matched) = heard.unzip();
        let changes = hands.settled(process);
        let denials = hands.denials(process, "").into_iter().filter(Denial::is_unnoticed);
        let decoys = denials.map(|denial| denial.reason).collect();
        Ok(Output { heard, matched: matched.flatten(), changes, decoys, ..answer(process, from, args.raw)? })
    }
}

fn millis(given: Option<u64>, default: u64) -> Duration {
    Duration::from_millis(given.unwrap_or(default))
}

fn list(hands: &dyn Hands) -> Result<Vec<ProcessSummary>, ToolError> {
    let listed = |process: &dyn ProcessHandle| {
        let (facts, progress) = (process.facts(), process.progress().borrow().clone());
        ProcessSummary {
            process: facts.id.clone(),
            command: facts.command.clone(),
            workdir: facts.workdir.clone(),
            started: facts.started.to_string(),
            running: progress.end.is_none(),
            exit_code: progress.end.and_then(|end| end.code.ok()),
            tty: facts.terminal,
            stdout_bytes: progress.stdout,
            stderr_bytes: progress.stderr,
        }
    };
    Ok(hands.processes()?.iter().map(|process| listed(process.as_ref())).collect())
}

/// Where to read from: the offsets of the call, or where the last reply ended.
fn start(args: &Args, process: &dyn ProcessHandle) -> [u64; 2] {
    let [out, err] = process.read_so_far();
    [args.offset.unwrap_or(out), args.stderr_offset.unwrap_or(err)]
}

async fn write(args: &Args, process: &dyn ProcessHandle, hands: &dyn Hands) -> Result<(), ToolError> {
    let text = args.text.as_deref().unwrap_or_default();
    let keys = keys::bytes(&args.keys)?;
    if text.is_empty() && keys.is_empty() && !args.close {
        return Err(ToolError::invalid_args("There is nothing to write: give `text`, `keys` or `close`."));
    }
    // A process that doesn't read must not block the call for ever.
    let written = tokio::time::timeout(WRITE_TIMEOUT, hands.feed(process, text, &keys)).await;
    written.map_err(|_| {
        ToolError::new(ErrorCode::Timeout, "The process doesn't read what is written to it.")
            .with_hint("Read its output to see what it does; `stop` ends it.")
    })??;
    if args.close { process.close_input().await } else { Ok(()) }
}

/// Its output from here on, and its state.
fn answer(process: &dyn ProcessHandle, from: [u64; 2], raw: bool) -> Result<Output, ToolError> {
    let progress = process.progress().borrow().clone();
    let is_terminal = process.facts().terminal;
    // An offset beyond the end counts as the end, so that later output there isn't skipped.
    let (out, err) = (
        excerpt(process, Stream::Stdout, from[0].min(progress.stdout), MAX_BYTES)?,
        excerpt(process, Stream::Stderr, from[1].min(progress.stderr), MAX_BYTES)?,
    );
    // Of a terminal, everything that was written to its screen counts as read.
    let next = if is_terminal && !raw { [progress.stdout, 0] } else { [out.next, err.next] };
    process.have_read(next);
    let has_more = next[0] < progress.stdout || next[1] < progress.stderr;
    let screen = process.screen();
    let unfinished = [Stream::Stdout, Stream::Stderr].map(|stream| process.unfinished(stream)).concat();
    let unfinished = String::from_utf8_lossy(&unfinished).into_owned();
    let shows = !is_terminal || raw;
    let is_running = progress.end.is_none();
    let (exit_code, stopped, refs) = match progress.end {
        Some(ProcessExit { code, stopped, refs, .. }) => (code.ok(), stopped, refs),
        None => (None, None, Vec::new()),
    };
    Ok(Output {
        running: Some(is_running),
        exit_code,
        timed_out: stopped == Some(StopReason::Time),
        stdout: shows.then_some(out.text),
        stderr: (!is_terminal).then_some(err.text),
        unfinished: (shows && !has_more && !unfinished.is_empty()).then_some(unfinished),
        next_offset: Some(next[0]),
        next_stderr_offset: (!is_terminal).then_some(next[1]),
        has_more,
        cursor: screen.as_ref().map(|screen| [screen.row, screen.column]),
        screen: screen.map(|screen| screen.text),
        artifacts: refs.into_iter().map(|stored| stored.id).collect(),
        ..Output::default()
    })
}
