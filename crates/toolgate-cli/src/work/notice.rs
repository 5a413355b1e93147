//! What earlier attempts at a task have done already, by their own record. Every call is on record before it acts, so
//! whatever an attempt that was cut off may have changed is known to the next one.

use std::collections::HashMap;

use toolgate_contract::{Effect, Event, Finish, Happening};
use toolgate_journal::{JournalError, State, read_events};

/// Calls that are named; a task that made more is told how many.
const MOST_CALLS: usize = 60;

/// What is known of the earlier attempts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Earlier {
    /// An answer that was found, but not kept before the worker was gone.
    pub(crate) answer: Option<String>,
    /// Each call that was taken up, and how far it came.
    calls: Vec<(String, &'static str)>,
}

impl Earlier {
    /// Reads the record of these runs. One that never really began did nothing.
    pub(crate) fn read(state: &State, runs: &[String]) -> Result<Self, JournalError> {
        let mut earlier = Self::default();
        for run in runs {
            match read_events(&state.run_dir(run)?) {
                Ok(events) => earlier.take(events.filter_map(Result::ok).map(|recorded| recorded.event)),
                Err(JournalError::NoSuchRun { .. }) => {}
                Err(JournalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(earlier)
    }

    fn take(&mut self, events: impl Iterator<Item = Event>) {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut first_agent = None;
        for event in events {
            match &event.happening {
                Happening::CallStarted { tool, effects, .. } => {
                    if let Some(id) = &event.tool_call_id {
                        places.insert(id.clone(), self.calls.len());
                    }
                    self.calls.push((in_words(tool, effects), "it isn't known how far it came"));
                }
                Happening::CallCompleted(_) => self.end(&places, &event, "done"),
                Happening::CallFailed { .. } => self.end(&places, &event, "failed"),
                Happening::AgentStarted { parent: None, .. } => first_agent = event.trace_id,
                // Those that it sent have answers of their own, which aren't the task's.
                Happening::AgentEnded { finish: Finish::Answered, summary, .. } if event.trace_id == first_agent => {
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

    /// The task, and what to know before going on with it.
    pub(crate) fn with(&self, task: &str) -> String {
        if self.calls.is_empty() {
            return task.to_owned();
        }
        let shown = self.calls.iter().take(MOST_CALLS).map(|(call, word)| format!("- {call}: {word}\n"));
        let more = self.calls.len().saturating_sub(MOST_CALLS);
        let more = if more > 0 { format!("- and {more} more\n") } else { String::new() };
        format!(
            "{task}\n\nAn earlier attempt at this task was cut off. It had made these calls:\n{}{more}\
             Look at what is there before you repeat one of them.",
            shown.collect::<String>()
        )
    }
}

fn in_words(tool: &str, effects: &[Effect]) -> String {
    let effects: Vec<String> = effects.iter().map(ToString::to_string).collect();
    format!("`{tool}` ({})", effects.join(", "))
}
