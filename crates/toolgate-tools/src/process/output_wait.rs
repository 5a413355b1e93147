//! Waiting for a process to do something. It is woken by what the process does, and looks at each byte once.

use std::time::Duration;

use super::escape_sequences::without_escapes;
use regex::bytes::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};
use toolgate_contract::{ProcessHandle, ProcessProgress, Stream, ToolError};

/// Output that comes together is shown together: it has come when nothing follows for so long.
const PAUSE: Duration = Duration::from_millis(80);

/// How much is searched at a time.
const WINDOW: usize = 256 * 1024;

/// How much a match may reach back over the border of two windows.
const OVERLAP: u64 = 4 * 1024;

/// What the waiting ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitOutcome {
    /// It wrote something.
    Output,
    /// What it wrote matches.
    Pattern,
    /// It has ended.
    Exit,
    /// Nothing, until the time was up.
    Nothing,
}

/// Somebody waits for a process.
pub(super) struct OutputWait<'a> {
    process: &'a dyn ProcessHandle,
    pattern: Option<Regex>,
    /// Where both streams are searched from.
    from: [u64; 2],
    /// How far it had come when the waiting began.
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

    /// Waits; gives also the text that matched.
    pub(super) async fn wait(mut self, patience: Duration) -> Result<(WaitOutcome, Option<String>), ToolError> {
        let deadline = Instant::now() + patience;
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

    /// Whether it wrote something that nobody has read, or that is new.
    fn has_new_output(&self, now: &ProcessProgress) -> bool {
        let unread = [now.stdout, now.stderr].iter().zip(self.from).any(|(written, read)| *written > read);
        let is_terminal = self.process.facts().terminal;
        (unread && !is_terminal) || now.pieces > self.before.pieces
    }

    /// The first match in what wasn't searched yet, or in what is held back. What only paints a terminal is no part of it.
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
