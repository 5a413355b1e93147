//! What passes and is never on record: what processes write, for whoever listens to their run just then.

use std::sync::Arc;

use tokio::sync::broadcast::error::TryRecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use toolgate_contract::Event;
use toolgate_runtime::EventSink;

/// How many pieces may wait for a slow listener; what is more, it misses.
const BACKLOG: usize = 256;

/// Takes what passes in all sessions of one program, and hands it to those who listen.
#[derive(Clone)]
pub struct LiveEvents(Sender<Arc<Event>>);

impl Default for LiveEvents {
    fn default() -> Self {
        Self(broadcast::channel(BACKLOG).0)
    }
}

impl LiveEvents {
    /// Listens to one run from now on.
    pub(crate) fn of_run(&self, run: &str) -> LiveEventReceiver {
        LiveEventReceiver { run: run.to_owned(), events: self.0.subscribe() }
    }
}

impl EventSink for LiveEvents {
    /// Those are on record, and told from there.
    fn event(&self, _event: &Event) {}

    fn live(&self, event: &Event) {
        // The last listener may just have left.
        let _ = self.0.send(Arc::new(event.clone()));
    }

    fn is_watched(&self) -> bool {
        self.0.receiver_count() > 0
    }
}

/// What one listener hears of a run.
pub(crate) struct LiveEventReceiver {
    run: String,
    events: Receiver<Arc<Event>>,
}

impl LiveEventReceiver {
    /// What has passed since the last time, in order.
    pub(crate) fn since(&mut self) -> Vec<Arc<Event>> {
        let mut heard = Vec::new();
        loop {
            match self.events.try_recv() {
                Ok(event) if event.run == self.run => heard.push(event),
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return heard,
            }
        }
    }
}
