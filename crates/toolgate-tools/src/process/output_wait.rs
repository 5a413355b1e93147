//! Waits for a process to write or end. Progress events wake it, and it searches each byte once.

use std::time::Duration;

use super::escape_sequences::without_escapes;
use regex::bytes::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};
use toolgate_contract::{ProcessHandle, ProcessProgress, Stream, ToolError};

/// Output pauses this long before it is returned, so that output written together is shown together.
const PAUSE: Duration = Duration::from_millis(80);

/// Bytes searched at a time.
const WINDOW: usize = 256 * 1024;

/// How far a match may reach back across the boundary of two windows.
const OVERLAP: u64 = 4 * 1024;

/// Why the wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitOutcome {
    /// It wrote something.
    Output,
    /// Its output matches.
    Pattern,
    /// It has ended.
    Exit,
    /// The time ran out first.
    Nothing,
}

/// A wait for output or for the end of a process.
pub(super) struct OutputWait<'a> {
    process: &'a dyn ProcessHandle,
    pattern: Option<Regex>,
    /// Search positions in both streams.
    from: [u64; 2],
    /// The process' progress when the wait began.
    before: ProcessProgress,
}

impl<'a> OutputWait<'a> {
    pub(super) fn new(
        process: &'a dyn ProcessHandle,
        from: [u64; 2],
        pattern: Option<&str>,
    ) -> Result<Self, ToolError> {
        let pattern = pattern.map(Regex::new).transpose().map_err(|fault| {
            ToolError::invalid_args(format!("`pattern` is not a regular expression: {fault}"))
                .with_hint("Escape special characters with a backslash to wait for them as they are.")
        })?;
        let before = process.progress().borrow().clone();
        Ok(Self { process, pattern, from, before })
    }

    /// Waits; also returns the text that matched.
    pub(super) async fn wait(mut self, limit: Duration) -> Result<(WaitOutcome, Option<String>), ToolError> {
        let deadline = Instant::now() + limit;
        let mut progress = self.process.progress();
        loop {
            let now = progress.borrow_and_update().clone();
            if let Some(matched) = self.search(&now)? {
                return Ok((WaitOutcome::Pattern, Some(matched)));
            }
            if now.end.is_some() {
                return Ok((WaitOutcome::Exit, None));
            }
            if self.pattern.is_none() && self.has_new_output(&now) {
                let pause = async { while timeout(PAUSE, progress.changed()).await.is_ok() {} };
                let _ = timeout_at(deadline, pause).await;
                let ended = progress.borrow().end.is_some();
                return Ok((if ended { WaitOutcome::Exit } else { WaitOutcome::Output }, None));
            }
            if timeout_at(deadline, progress.changed()).await.is_err() {
                return Ok((WaitOutcome::Nothing, None));
            }
        }
    }

    /// Whether the process wrote anything unread or new.
    fn has_new_output(&self, now: &ProcessProgress) -> bool {
        let unread = [now.stdout, now.stderr].iter().zip(self.from).any(|(written, read)| *written > read);
        let is_terminal = self.process.facts().terminal;
        (unread && !is_terminal) || now.pieces > self.before.pieces
    }

    /// The first match in output not yet searched, or in output held back. Escape sequences are not part of it.
    fn search(&mut self, now: &ProcessProgress) -> Result<Option<String>, ToolError> {
        let Some(pattern) = &self.pattern else { return Ok(None) };
        let is_terminal = self.process.facts().terminal;
        let found =
            |bytes: &[u8]| pattern.find(bytes).map(|found| String::from_utf8_lossy(found.as_bytes()).into_owned());
        for (stream, written) in [(Stream::Stdout, now.stdout), (Stream::Stderr, now.stderr)] {
            let from = &mut self.from[stream as usize];
            loop {
                let mut window = self.process.read(stream, *from, WINDOW)?;
                let next = *from + window.len() as u64;
                if next >= written {
                    window.extend(self.process.unfinished(stream));
                }
                let window = if is_terminal { without_escapes(&window) } else { window };
                if let Some(matched) = found(&window) {
                    return Ok(Some(matched));
                }
                *from = next.saturating_sub(OVERLAP).max(*from);
                if next >= written {
                    break;
                }
            }
        }
        Ok(None)
    }
}
