//! Live events, which are never recorded: what processes write, for clients that follow their run at that moment.

use std::sync::Arc;

use tokio::sync::broadcast::error::TryRecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use toolgate_contract::Event;
use toolgate_runtime::EventSink;

/// How many events are kept for a slow listener; it misses what comes beyond that.
const BACKLOG: usize = 256;

/// Broadcasts the live events of all sessions of one program.
#[derive(Clone)]
pub struct LiveEvents(Sender<Arc<Event>>);

impl Default for LiveEvents {
    fn default() -> Self {
        Self(broadcast::channel(BACKLOG).0)
    }
}

impl LiveEvents {
    /// Follows one run from now on.
    pub fn of_run(&self, run: &str) -> LiveEventReceiver {
        LiveEventReceiver { run: Some(run.to_owned()), events: self.0.subscribe() }
    }

    /// Follows all runs from now on.
    pub fn of_all_runs(&self) -> LiveEventReceiver {
        LiveEventReceiver { run: None, events: self.0.subscribe() }
    }
}

impl EventSink for LiveEvents {
    /// Recorded events are read from the record.
    fn event(&self, _event: &Event) {}

    fn live(&self, event: &Event) {
        // It is no error if nobody listens.
        let _ = self.0.send(Arc::new(event.clone()));
    }

    fn is_watched(&self) -> bool {
        self.0.receiver_count() > 0
    }
}

/// The live events of one run or of all, for one listener.
pub struct LiveEventReceiver {
    run: Option<String>,
    events: Receiver<Arc<Event>>,
}

impl LiveEventReceiver {
    /// The events since the last time, in order.
    pub fn since(&mut self) -> Vec<Arc<Event>> {
        let mut events = Vec::new();
        loop {
            match self.events.try_recv() {
                Ok(event) if self.run.as_ref().is_none_or(|run| *run == event.run) => events.push(event),
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return events,
            }
        }
    }
}
