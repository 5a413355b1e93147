//! Supervises one process from its start to its end: reads its output, stops it when it times out or is asked to, and does
//! everything that has to be done when it has ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolgate_contract::{
    ChildProcess, EventPayload, MisreadCommand, Output, ProcessExit, ProcessHandle, SettledChanges, StopReason, Stream,
    ToolError,
};

use super::{OutputThrottle, ProcessSlot, SessionProcess};
use crate::gate::CommandSettlement;
use crate::locks::PathLocks;

/// The exit code of a process that timed out, as of coreutils' `timeout`.
const TIMED_OUT: i32 = 124;

/// Comparing what a command changed counts in its time limit. What ran until near its limit has at least this long for it.
const LEAST_TO_COMPARE: Duration = Duration::from_secs(60);

/// How long comparing the staged changes of a command may take: the rest of its own time limit, at most as long as configured.
fn time_to_compare(limit: Duration, used: Duration, longest: Duration) -> Duration {
    limit.saturating_sub(used).max(LEAST_TO_COMPARE).min(longest)
}

/// A process and everything that is needed to supervise it.
pub(crate) struct ProcessSupervisor {
    pub(crate) child: SupervisedChild,
    pub(crate) process: Arc<SessionProcess>,
    /// How its changes are settled.
    pub(crate) settlement: CommandSettlement,
    /// Held while staged changes are applied, so that nobody sees half of them.
    pub(crate) locks: Arc<PathLocks>,
    pub(crate) shown: OutputThrottle,
    /// Its timeout.
    pub(crate) longest: Duration,
    /// The longest that comparing its staged changes may take, whatever its timeout.
    pub(crate) settle_longest: Duration,
    /// Bytes of output; a process that writes more is killed.
    pub(crate) most_bytes: u64,
    pub(crate) slot: ProcessSlot,
}

/// The supervisor's guard of a process, which is killed when its supervisor ends. Others only keep its output and its state.
pub(crate) struct SupervisedChild(pub(crate) Arc<dyn ChildProcess>);

impl Drop for SupervisedChild {
    fn drop(&mut self) {
        self.0.kill();
        self.0.release();
    }
}

impl ProcessSupervisor {
    /// Supervises a process until it has ended.
    pub(crate) async fn supervise(mut self) {
        let started = Instant::now();
        let (stopped, fault) = self.listen(started + self.longest).await;
        let (code, changes) = match self.wait_and_settle(started).await {
            Ok((code, changes)) => (fault.map_or(Ok(code), Err), changes),
            Err(error) => (Err(error), None),
        };
        self.end(started.elapsed(), stopped, code, changes);
    }

    /// Waits for the end, and settles the command's changes before the end is reported.
    async fn wait_and_settle(&self, started: Instant) -> Result<(i32, Option<SettledChanges>), ToolError> {
        let code = self.child.0.wait().await?;
        let staged = self.child.0.staged();
        let _lock = match staged {
            Some(_) => Some(self.locks.acquire_for_settling().await),
            None => None,
        };
        let longest = time_to_compare(self.longest, started.elapsed(), self.settle_longest);
        let changes = self.settlement.settle(staged, longest).await?;
        Ok((code, changes))
    }

    /// Reads its output until no process has it open any more.
    async fn listen(&mut self, deadline: Instant) -> (Option<StopReason>, Option<ToolError>) {
        let (mut stopped, mut fault) = (None, None);
        loop {
            let due = self.shown.due();
            let piece = tokio::select! {
                biased;
                () = self.process.stop.cancelled(), if stopped.is_none() => {
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
                piece = self.child.0.output() => piece,
            };
            let Some(piece) = piece else { return (stopped, fault) };
            match self.take(piece) {
                Ok(bytes) if bytes > self.most_bytes && stopped.is_none() => stopped = self.kill(StopReason::Output),
                Ok(_) => {}
                // Output that can't be stored must not be lost silently.
                Err(error) => {
                    stopped = stopped.or_else(|| self.kill(StopReason::Output));
                    fault = Some(error);
                }
            }
        }
    }

    fn kill(&self, why: StopReason) -> Option<StopReason> {
        self.child.0.kill();
        Some(why)
    }

    fn take(&mut self, piece: Output) -> Result<u64, ToolError> {
        let (stream, bytes) = match &piece {
            Output::Out(bytes) => (Stream::Stdout, bytes),
            Output::Err(bytes) => (Stream::Stderr, bytes),
        };
        let (clean, all) = self.process.take(stream, bytes)?;
        self.shown.push(stream, &clean);
        Ok(all)
    }

    /// Finishes a command that has ended, during its call or after it; none of its processes runs any more. Its output is
    /// stored before the end is reported.
    fn end(
        mut self,
        duration: Duration,
        stopped: Option<StopReason>,
        code: Result<i32, ToolError>,
        changes: Option<SettledChanges>,
    ) {
        let released = [Stream::Stdout, Stream::Stderr].map(|stream| {
            let (clean, _) = self.process.release(stream)?;
            self.shown.push(stream, &clean);
            Ok::<_, ToolError>(())
        });
        self.shown.flush();
        let stored = self.process.store();
        let fault = released.into_iter().find_map(Result::err);
        let code = match (fault, &stored) {
            (Some(fault), _) => Err(fault),
            (None, Err(fault)) => Err(fault.clone()),
            (None, Ok(_)) => code,
        };
        let code = code.map(|code| if stopped == Some(StopReason::Time) { TIMED_OUT } else { code });
        let refs = stored.unwrap_or_default();
        let changes = self.with_misreading(changes);
        let end = ProcessExit { code: code.map_err(|fault| fault.message), stopped, duration, refs, changes };
        drop((self.child, self.slot));
        if self.process.close() {
            self.process.event_writer.record(ended(&self.process.facts().id, &end));
        }
        self.process.announce(end);
    }

    /// Adds what a command that was to change nothing tried to change, and records that it was misread.
    fn with_misreading(&self, changes: Option<SettledChanges>) -> Option<SettledChanges> {
        if !self.settlement.is_read_only() {
            return changes;
        }
        let mut settled = changes.unwrap_or_default();
        let errors = if self.process.facts().terminal { Stream::Stdout } else { Stream::Stderr };
        let errors = self.process.whole(errors).map(|whole| whole.text).unwrap_or_default();
        settled.refused.extend(self.child.0.refused_changes(&errors));
        if settled.refused.is_empty() {
            return Some(settled).filter(|settled| !settled.is_empty());
        }
        settled.notes.push(MISREAD.into());
        let (command, paths) = (self.process.facts().command.clone(), settled.refused.clone());
        self.process.event_writer.record(EventPayload::CommandMisread(MisreadCommand { command, paths }));
        Some(settled)
    }
}

/// Why a command that reads couldn't write.
const MISREAD: &str = "It tried to change files, and nothing was changed: Toolgate had read it as a command that changes \
                       nothing, so the workspace was read-only for it. That is a mistake of Toolgate's, which is on record \
                       (`toolgate doctor`). Do the change in another way, such as with `edit` or `write`.";

fn ended(process: &str, end: &ProcessExit) -> EventPayload {
    EventPayload::ProcessEnded {
        process: process.to_owned(),
        exit_code: end.code.as_ref().map_or(-1, |code| i64::from(*code)),
        timed_out: end.stopped == Some(StopReason::Time),
        duration_ms: end.duration.as_millis() as u64,
        refs: end.refs.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparing_counts_in_the_time_limit() {
        let seconds = Duration::from_secs;
        let allowed = |limit, used| time_to_compare(seconds(limit), seconds(used), seconds(600)).as_secs();
        assert_eq!([allowed(3600, 5), allowed(200, 20), allowed(120, 110), allowed(5, 5)], [600, 180, 60, 60]);
        assert_eq!(time_to_compare(seconds(120), seconds(0), Duration::ZERO), Duration::ZERO);
    }
}
