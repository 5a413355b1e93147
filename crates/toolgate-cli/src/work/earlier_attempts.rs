//! What earlier attempts at a task have already done, from their journals. Every call is recorded before it acts, so
//! the next attempt knows everything that an interrupted one may have changed.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_contract::{Effect, Event, EventPayload, FinishReason};
use toolgate_journal::{EventStore, JournalError, StateDirectory, read_events};

/// Maximum number of calls listed; a task with more gets the count.
const MAX_CALLS: usize = 60;

/// Events read from a store at a time.
const PAGE: usize = 1000;

/// Where runs are recorded: runs of this host in their journals, runs of other hosts in the store.
#[derive(Clone)]
pub(crate) struct RunRecords {
    pub(crate) state: Arc<StateDirectory>,
    pub(crate) store: Arc<dyn EventStore>,
}

impl RunRecords {
    /// The events of a run, and whether they are complete. A run that never began has none.
    fn events(&self, run: &str) -> Result<(Vec<Event>, bool), JournalError> {
        match read_events(&self.state.run_dir(run)?) {
            Ok(events) => Ok((events.filter_map(Result::ok).map(|recorded| recorded.event).collect(), true)),
            Err(JournalError::NoSuchRun { .. }) => self.events_of_another_host(run),
            Err(JournalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                self.events_of_another_host(run)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads from the store. It is filled in the background, so the last events may be missing.
    fn events_of_another_host(&self, run: &str) -> Result<(Vec<Event>, bool), JournalError> {
        let (mut events, mut last) = (Vec::new(), 0);
        loop {
            let page = self.store.events(run, last, PAGE)?;
            let Some(end) = page.last() else { return Ok((events.clone(), events.is_empty())) };
            last = end.seq;
            events.extend(page.into_iter().map(|recorded| recorded.event));
        }
    }
}

/// The result of the earlier attempts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EarlierAttempts {
    /// An answer that was found, but not stored before the worker died.
    pub(crate) answer: Option<String>,
    /// Each call that was started, and its outcome.
    calls: Vec<(String, &'static str)>,
    /// An attempt ran on another host, which may have done more than is known here.
    was_elsewhere: bool,
}

impl EarlierAttempts {
    /// Reads the events of these runs.
    pub(crate) fn read(records: &RunRecords, runs: &[String]) -> Result<Self, JournalError> {
        let mut earlier = Self::default();
        for run in runs {
            let (events, is_all) = records.events(run)?;
            earlier.was_elsewhere |= !is_all;
            earlier.take(events.into_iter());
        }
        Ok(earlier)
    }

    fn take(&mut self, events: impl Iterator<Item = Event>) {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut first_agent = None;
        for event in events {
            match &event.payload {
                EventPayload::CallStarted { tool, effects, .. } => {
                    if let Some(id) = &event.tool_call_id {
                        places.insert(id.clone(), self.calls.len());
                    }
                    self.calls.push((in_words(tool, effects), "its outcome is unknown"));
                }
                EventPayload::CallCompleted(_) => self.end(&places, &event, "done"),
                EventPayload::CallFailed { .. } => self.end(&places, &event, "failed"),
                EventPayload::AgentStarted { parent: None, .. } => first_agent = event.trace_id,
                // Subagents have answers of their own, which aren't the task's.
                EventPayload::AgentEnded { finish: FinishReason::Answered, summary, .. }
                    if event.trace_id == first_agent =>
                {
                    self.answer = Some(summary.clone());
                }
                _ => {}
            }
        }
    }

    fn end(&mut self, places: &HashMap<String, usize>, event: &Event, word: &'static str) {
        let place = event.tool_call_id.as_ref().and_then(|id| places.get(id));
        if let Some(call) = place.and_then(|index| self.calls.get_mut(*index)) {
            call.1 = word;
        }
    }

    /// The task, with what the next attempt has to know.
    pub(crate) fn with(&self, task: &str) -> String {
        if self.calls.is_empty() && !self.was_elsewhere {
            return task.to_owned();
        }
        let shown = self.calls.iter().take(MAX_CALLS).map(|(call, word)| format!("- {call}: {word}\n"));
        let more = self.calls.len().saturating_sub(MAX_CALLS);
        let more = if more > 0 { format!("- and {more} more\n") } else { String::new() };
        let elsewhere = match self.was_elsewhere {
            true => "- perhaps others: an attempt ran on another host, and its events may be incomplete here\n",
            false => "",
        };
        format!(
            "{task}\n\nAn earlier attempt at this task was cut off. It had made these calls:\n{}{more}{elsewhere}\
             Check the current state before you repeat one of them.",
            shown.collect::<String>()
        )
    }
}

fn in_words(tool: &str, effects: &[Effect]) -> String {
    let effects: Vec<String> = effects.iter().map(ToString::to_string).collect();
    format!("`{tool}` ({})", effects.join(", "))
}
