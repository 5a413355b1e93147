//! Tends to one process from its start to its end: takes what it writes, stops it when its time is up or somebody wants it,
//! and sees to what has to be done when it has ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolgate_contract::{EventPayload, Output, Process, ProcessExit, ProcessHandle, StopReason, Stream, ToolError};

use super::{OutputThrottle, ProcessSlot, SessionProcess};

/// The code that `timeout` gives, and so do we.
const TIMED_OUT: i32 = 124;

/// A process and everything that is needed to tend to it.
pub(crate) struct ProcessSupervisor {
    pub(crate) process: Box<dyn Process>,
    pub(crate) entry: Arc<SessionProcess>,
    pub(crate) shown: OutputThrottle,
    /// It is killed after this.
    pub(crate) longest: Duration,
    /// What writes more is killed.
    pub(crate) most_bytes: u64,
    pub(crate) slot: ProcessSlot,
}

/// Tends to a process until it has ended.
pub(crate) async fn tend(mut tending: ProcessSupervisor) {
    let started = Instant::now();
    let (stopped, fault) = tending.listen(started + tending.longest).await;
    let code = tending.process.wait().await;
    tending.end(started.elapsed(), stopped, code.and_then(|code| fault.map_or(Ok(code), Err)));
}

impl ProcessSupervisor {
    /// Takes what it writes until nobody holds its output any more.
    async fn listen(&mut self, deadline: Instant) -> (Option<StopReason>, Option<ToolError>) {
        let (mut stopped, mut fault) = (None, None);
        loop {
            let due = self.shown.due();
            let piece = tokio::select! {
                biased;
                () = self.entry.stop.cancelled(), if stopped.is_none() => {
                    stopped = self.kill(StopReason::Request);
                    continue;
                }
                () = sleep_until(deadline), if stopped.is_none() => {
                    stopped = self.kill(StopReason::Time);
                    continue;
                }
                () = sleep_until(due.unwrap_or(deadline)), if due.is_some() => {
                    self.shown.flush();
                    continue;
                }
                piece = self.process.output() => piece,
            };
            let Some(piece) = piece else { return (stopped, fault) };
            match self.take(piece) {
                Ok(bytes) if bytes > self.most_bytes && stopped.is_none() => stopped = self.kill(StopReason::Output),
                Ok(_) => {}
                // Output that can't be kept must not be lost unseen.
                Err(error) => {
                    stopped = stopped.or_else(|| self.kill(StopReason::Output));
                    fault = Some(error);
                }
            }
        }
    }

    fn kill(&self, why: StopReason) -> Option<StopReason> {
        self.process.kill();
        Some(why)
    }

    fn take(&mut self, piece: Output) -> Result<u64, ToolError> {
        let (stream, bytes) = match &piece {
            Output::Out(bytes) => (Stream::Stdout, bytes),
            Output::Err(bytes) => (Stream::Stderr, bytes),
        };
        let (clean, all) = self.entry.take(stream, bytes)?;
        self.shown.push(stream, &clean);
        Ok(all)
    }

    /// The command has ended, within its call or long after it: both come here, and nothing of it runs any more. Whatever
    /// has to happen with what it leaves behind happens here, before anybody is told.
    fn end(mut self, duration: Duration, stopped: Option<StopReason>, code: Result<i32, ToolError>) {
        let released = [Stream::Stdout, Stream::Stderr].map(|stream| {
            let (clean, _) = self.entry.release(stream)?;
            self.shown.push(stream, &clean);
            Ok::<_, ToolError>(())
        });
        self.shown.flush();
        let stored = self.entry.store();
        let fault = released.into_iter().find_map(Result::err);
        let code = match (fault, &stored) {
            (Some(fault), _) => Err(fault),
            (None, Err(fault)) => Err(fault.clone()),
            (None, Ok(_)) => code,
        };
        let code = code.map(|code| if stopped == Some(StopReason::Time) { TIMED_OUT } else { code });
        let changes = self.process.settled();
        let refs = stored.unwrap_or_default();
        let end = ProcessExit { code: code.map_err(|fault| fault.message), stopped, duration, refs, changes };
        drop((self.process, self.slot));
        if self.entry.close() {
            self.entry.event_writer.record(ended(&self.entry.facts().id, &end));
        }
        self.entry.announce(end);
    }
}

fn ended(process: &str, end: &ProcessExit) -> EventPayload {
    EventPayload::ProcessEnded {
        process: process.to_owned(),
        exit_code: end.code.as_ref().map_or(-1, |code| i64::from(*code)),
        timed_out: end.stopped == Some(StopReason::Time),
        duration_ms: end.duration.as_millis() as u64,
        refs: end.refs.clone(),
    }
}
