//! The end of a call that fails while it works: cancelled, out of time, or with a panic. What it has begun is stopped and
//! settled first, and then counted, so that its reply and its record say everything that happened, in order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::task::TaskTracker;
use toolgate_contract::{ProcessHandle, ProcessHands, Stream, ToolError, counted};

use super::call_hands::CallHands;

/// How long a call waits for what it has begun. A command is killed, so this is time to settle its changes. What takes longer
/// is settled and recorded all the same, after the call.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes at the end of each stream that an error shows.
const SHOWN_BYTES: usize = 16 * 1024;

/// What a call has begun and hasn't counted yet.
#[derive(Clone, Default)]
pub(super) struct UnfinishedWork {
    /// Work on other threads, and commands that are being started.
    pub(super) tasks: TaskTracker,
    commands: Arc<Mutex<Vec<Arc<dyn ProcessHandle>>>>,
    /// Commands whose changes are counted already, by their handle.
    counted: Arc<Mutex<BTreeSet<String>>>,
}

impl UnfinishedWork {
    pub(super) fn add(&self, command: &Arc<dyn ProcessHandle>) {
        self.commands.lock().push(Arc::clone(command));
    }

    /// Marks a command as counted; false if it was counted before.
    pub(super) fn count(&self, command: &dyn ProcessHandle) -> bool {
        self.counted.lock().insert(command.facts().id.clone())
    }

    /// The commands that still belong to the call and aren't counted.
    fn commands(&self) -> Vec<Arc<dyn ProcessHandle>> {
        let counted = self.counted.lock();
        let is_left = |command: &&Arc<dyn ProcessHandle>| {
            !command.is_detached() && !counted.contains(command.facts().id.as_str())
        };
        self.commands.lock().iter().filter(is_left).cloned().collect()
    }

    /// Stops everything, and returns when all of it has ended and is settled.
    async fn end(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        for command in self.commands() {
            command.abandon();
            command.stop().await;
        }
    }
}

impl CallHands {
    /// Stops what a failed call has begun, waits for it, and adds to the error what commands wrote and changed until then.
    pub(in crate::gate) async fn stop(&self, mut error: ToolError) -> ToolError {
        self.services.cancel.cancel();
        let is_settled = tokio::time::timeout(SETTLE_TIMEOUT, self.unfinished.end()).await.is_ok();
        self.note_interrupted_server();
        let mut facts = Map::new();
        for command in self.unfinished.commands() {
            facts.extend(self.count_stopped(command.as_ref()));
        }
        if !is_settled {
            let time = counted(SETTLE_TIMEOUT.as_secs(), "second");
            facts.insert("unsettled".into(), json!(true));
            error = error.with_hint(format!(
                "What it had begun didn't end within {time}. What it changes until it ends is recorded then; \
                 `toolgate changes` shows it."
            ));
        }
        if !facts.is_empty() {
            let details = error.details.get_or_insert_with(|| json!({}));
            if let Value::Object(details) = details {
                details.extend(facts);
            }
        }
        error
    }

    /// Counts what a command did until it was stopped. Returns the end of its output, and its changes.
    fn count_stopped(&self, command: &dyn ProcessHandle) -> Map<String, Value> {
        let [stdout, stderr] = [Stream::Stdout, Stream::Stderr].map(|stream| last_output(command, stream));
        let mut facts = Map::new();
        if let Some(end) = command.progress().borrow().end.clone() {
            self.note(|tally| tally.refs.extend(end.refs));
            if let Ok(code) = end.code {
                self.ended(i64::from(code));
            }
            self.denials(command, if command.facts().terminal { &stdout } else { &stderr });
        }
        self.redacted(command);
        if let Some(changes) = self.settled(command) {
            facts.insert("changes".into(), json!(changes));
        }
        for (name, text) in [("stdout", stdout), ("stderr", stderr)] {
            if !text.is_empty() {
                facts.insert(name.into(), text.into());
            }
        }
        facts
    }
}

/// The end of what a command wrote so far.
fn last_output(command: &dyn ProcessHandle, stream: Stream) -> String {
    let written = { [command.progress().borrow().stdout, command.progress().borrow().stderr][stream as usize] };
    let bytes = command.read(stream, written.saturating_sub(SHOWN_BYTES as u64), SHOWN_BYTES);
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}
