//! The calls that run on a server: whom the server may ask meanwhile, how often, and whether it still says that it works.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use toolgate_contract::{Message, MessageLevel, Person};

use crate::foreign_text::excerpt;

/// How often a server may ask the person during one call.
pub(super) const MOST_QUESTIONS: usize = 5;

/// Messages about the progress of one call that are shown and recorded. Later ones only show that the server works.
const MOST_MESSAGES: usize = 50;

/// Characters of such a message.
const LONGEST_MESSAGE: usize = 200;

/// The calls that run.
#[derive(Default)]
pub(super) struct CallsInProgress(Mutex<CallList>);

#[derive(Default)]
struct CallList {
    last_token: u64,
    calls: Vec<CallState>,
}

struct CallState {
    token: u64,
    person: Arc<dyn Person>,
    /// How often the person was asked.
    asked: usize,
    /// How many messages were shown.
    shown: usize,
    pulse: Arc<CallPulse>,
}

/// Signs of life of a call.
#[derive(Default)]
pub(super) struct CallPulse {
    pub(super) beat: Notify,
    /// How many questions wait for the person's answer now.
    waiting: Mutex<usize>,
}

impl CallPulse {
    /// Whether the person is being asked, so that the server isn't to blame for the time.
    pub(super) fn waits_for_person(&self) -> bool {
        *self.waiting.lock() > 0
    }
}

/// A call that runs, until this is dropped.
pub(super) struct TrackedServerCall<'a> {
    calls: &'a CallsInProgress,
    /// The token by which the server names the call when it tells of progress.
    pub(super) token: u64,
    pub(super) pulse: Arc<CallPulse>,
}

/// A question of the server that waits for its answer.
pub(super) struct OpenQuestion {
    pub(super) person: Arc<dyn Person>,
    pulse: Arc<CallPulse>,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        *self.pulse.waiting.lock() -= 1;
        self.pulse.beat.notify_one();
    }
}

impl CallsInProgress {
    /// Registers a call of this person.
    pub(super) fn begin(&self, person: Arc<dyn Person>) -> TrackedServerCall<'_> {
        let mut list = self.0.lock();
        list.last_token += 1;
        let (token, pulse) = (list.last_token, Arc::<CallPulse>::default());
        list.calls.push(CallState { token, person, asked: 0, shown: 0, pulse: Arc::clone(&pulse) });
        TrackedServerCall { calls: self, token, pulse }
    }

    /// A question to the person of the call that began last, unless the server asked often enough.
    pub(super) fn begin_question(&self) -> Option<OpenQuestion> {
        let mut list = self.0.lock();
        let call = list.calls.last_mut()?;
        call.asked += 1;
        if call.asked > MOST_QUESTIONS {
            return None;
        }
        *call.pulse.waiting.lock() += 1;
        Some(OpenQuestion { person: Arc::clone(&call.person), pulse: Arc::clone(&call.pulse) })
    }

    /// Takes news of a call's progress, and shows them.
    pub(super) fn hear_progress(&self, server: &str, params: &Value) {
        let mut list = self.0.lock();
        let token = params.get("progressToken").and_then(Value::as_u64);
        let Some(call) = list.calls.iter_mut().find(|call| Some(call.token) == token) else { return };
        call.pulse.beat.notify_one();
        call.shown += 1;
        if call.shown > MOST_MESSAGES {
            return;
        }
        let person = Arc::clone(&call.person);
        drop(list);
        person.say(&Message {
            level: MessageLevel::Progress,
            title: None,
            content: progress_text(server, params),
            thought: None,
            evidence: Vec::new(),
        });
    }
}

fn progress_text(server: &str, params: &Value) -> String {
    let number = |name: &str| params.get(name).and_then(Value::as_f64);
    let share = match (number("progress"), number("total")) {
        (Some(done), Some(total)) => format!("{done} of {total}"),
        (Some(done), None) => done.to_string(),
        _ => "works".to_owned(),
    };
    match params.get("message").and_then(Value::as_str) {
        Some(words) => format!("{server}: {share}: {}", excerpt(words, LONGEST_MESSAGE)),
        None => format!("{server}: {share}"),
    }
}

impl Drop for TrackedServerCall<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().calls.retain(|call| call.token != self.token);
    }
}
