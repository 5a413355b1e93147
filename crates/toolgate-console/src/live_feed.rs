//! What happens in the workspace, live: one task reads the record, the approval queue, the inbox and the processes,
//! however many pages follow. It runs while somebody follows. The last items are kept, so that a client that was disconnected goes on
//! where it was.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_contract::{Event, EventPayload, ProcessHandle};
use toolgate_journal::{Follower, Task, run_directories};
use toolgate_workspace::{LiveEventReceiver, LiveListener};

use crate::event_summary::summarize;
use crate::server_state::ServerState;

/// How often the runs at work are read.
const READ_INTERVAL: Duration = Duration::from_millis(100);

/// How often new runs, the queue and the processes are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// How often the inbox is read, which may be in a database elsewhere.
const INBOX_INTERVAL: Duration = Duration::from_millis(700);

/// How many of the newest tasks are watched.
const WATCHED_TASKS: usize = 50;

/// How many items are kept for those who come back.
const KEPT: usize = 4096;

/// How long it is read on when nobody follows any more: whoever was disconnected may come back.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many of the newest runs are watched for new events.
const WATCHED_RUNS: usize = 100;

/// One item.
pub(crate) struct FeedItem {
    pub(crate) number: u64,
    /// The run that it is about; none if it is about the workspace.
    pub(crate) run: Option<String>,
    /// As it is sent, to everybody who follows.
    pub(crate) sent: Bytes,
}

/// The items of the last while, and a signal that there are more.
pub(crate) struct LiveFeed {
    /// Tells this server's items from those of one before it.
    pub(crate) epoch: String,
    items: Mutex<VecDeque<Arc<FeedItem>>>,
    last: watch::Sender<u64>,
    reading: Mutex<FeedReading>,
}

/// Whether it is read, and since which item without a gap.
#[derive(Default)]
struct FeedReading {
    is_running: bool,
    since: u64,
}

impl LiveFeed {
    pub(crate) fn new(epoch: String) -> Self {
        let last = watch::Sender::new(0);
        Self { epoch, items: Mutex::default(), last, reading: Mutex::default() }
    }

    /// Follows from now on; the task that reads is started if it doesn't run.
    pub(crate) fn follow(self: &Arc<Self>, state: &Arc<ServerState>) -> watch::Receiver<u64> {
        let receiver = self.last.subscribe();
        let mut reading = self.reading.lock();
        if !reading.is_running {
            // What happened while nobody read is missing between the items of before and those that come.
            let since = self.last() + 1;
            *reading = FeedReading { is_running: true, since };
            self.last.send_replace(since);
            tokio::spawn(read_on(Arc::clone(self), Arc::downgrade(state)));
        }
        receiver
    }

    /// Whether a client that has seen everything up to this item can go on there.
    pub(crate) fn goes_on_after(&self, number: u64) -> bool {
        (self.reading.lock().since..=self.last()).contains(&number)
    }

    /// The items after a number; none if some of them are gone.
    pub(crate) fn after(&self, number: u64) -> Option<Vec<Arc<FeedItem>>> {
        if number < self.reading.lock().since {
            return None;
        }
        let items = self.items.lock();
        let first = items.front().map_or(number + 1, |item| item.number);
        let start = items.partition_point(|item| item.number <= number);
        (first <= number + 1).then(|| items.range(start..).cloned().collect())
    }

    /// The number of the last item.
    pub(crate) fn last(&self) -> u64 {
        *self.last.borrow()
    }

    fn push_live(&self, event: &Event) {
        self.push(Some(event.run.clone()), &summarize(event, None));
    }

    /// Adds an item. Whoever follows learns of it when everything that was read is there.
    fn push(&self, run: Option<String>, value: &Value) {
        let mut items = self.items.lock();
        let number = items.back().map_or(0, |item| item.number).max(self.last()) + 1;
        let sent = format!("id: {}-{number}\nevent: live\ndata: {value}\n\n", self.epoch).into();
        items.push_back(Arc::new(FeedItem { number, run, sent }));
        if items.len() > KEPT {
            items.pop_front();
        }
    }

    /// Tells those who follow of the items that were added.
    fn publish(&self) {
        let newest = self.items.lock().back().map_or(0, |item| item.number);
        self.last.send_if_modified(|last| {
            let is_behind = *last < newest;
            *last = newest.max(*last);
            is_behind
        });
    }
}

/// Reads until nobody follows any more, nor comes back.
async fn read_on(feed: Arc<LiveFeed>, state: Weak<ServerState>) {
    let Some(mut reader) = state.upgrade().map(|state| Some(FeedReader::new(&state))) else { return };
    let mut followed = Instant::now();
    loop {
        let Some(state) = state.upgrade().filter(|state| !state.closed.is_cancelled()) else { break };
        {
            let mut reading = feed.reading.lock();
            if feed.last.receiver_count() > 0 {
                followed = Instant::now();
            } else if followed.elapsed() > PATIENCE {
                reading.is_running = false;
                return;
            }
        }
        let (feed, mut taken) = (Arc::clone(&feed), reader.take());
        let read = tokio::task::spawn_blocking(move || {
            if let Some(reader) = &mut taken {
                reader.read(&feed, &state);
            }
            taken
        });
        reader = read.await.ok().flatten();
        if reader.is_none() {
            break;
        }
        tokio::time::sleep(READ_INTERVAL).await;
    }
    feed.reading.lock().is_running = false;
}

/// What has been read so far.
struct FeedReader {
    /// What commands of this program write.
    live: LiveEventReceiver,
    /// What commands of other programs write; none where no socket can be made.
    others: Option<LiveListener>,
    runs: BTreeMap<String, WatchedRun>,
    waiting: BTreeMap<String, String>,
    processes: BTreeSet<String>,
    tasks: Vec<Task>,
    looked: Option<Instant>,
    looked_at_inbox: Option<Instant>,
}

/// A run that is watched.
struct WatchedRun {
    follower: Follower,
    has_ended: bool,
    /// Whether a program worked in it when it was last looked at.
    is_open: bool,
}

impl FeedReader {
    fn new(state: &ServerState) -> Self {
        Self {
            live: state.workspace.live.of_all_runs(),
            others: state.workspace.followers.listen().ok(),
            runs: BTreeMap::new(),
            waiting: BTreeMap::new(),
            processes: BTreeSet::new(),
            tasks: Vec::new(),
            looked: None,
            looked_at_inbox: None,
        }
    }

    fn read(&mut self, feed: &LiveFeed, state: &ServerState) {
        let looks = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_INTERVAL);
        if looks {
            self.find_runs(state);
            self.look_at_queue(feed, state);
            self.look_at_processes(feed, state);
            self.looked = Some(Instant::now());
        }
        if self.looked_at_inbox.is_none_or(|looked| looked.elapsed() >= INBOX_INTERVAL) {
            self.look_at_inbox(feed, state);
            self.looked_at_inbox = Some(Instant::now());
        }
        let mut output = self.output(state);
        for (run, watched) in &mut self.runs {
            if watched.has_ended {
                continue;
            }
            for recorded in watched.follower.more().unwrap_or_default() {
                watched.is_open = true;
                watched.has_ended |= matches!(recorded.event.payload, EventPayload::RunEnded);
                if matches!(recorded.event.payload, EventPayload::CallCompleted(_) | EventPayload::CallFailed { .. }) {
                    let of_call = |event: &mut Arc<Event>| event.tool_call_id == recorded.event.tool_call_id;
                    output.extract_if(.., of_call).for_each(|event| feed.push_live(&event));
                }
                feed.push(Some(run.clone()), &summarize(&recorded.event, Some(recorded.seq)));
            }
        }
        output.iter().for_each(|event| feed.push_live(event));
        if looks {
            self.find_lost_runs(feed, state);
        }
        feed.publish();
    }

    /// A run whose program died has no event that says so. It is looked at after its events were read.
    fn find_lost_runs(&mut self, feed: &LiveFeed, state: &ServerState) {
        for (run, watched) in self.runs.iter_mut().filter(|(_, watched)| watched.is_open && !watched.has_ended) {
            watched.is_open = state.workspace.state.is_run_open(run);
            if !watched.is_open {
                feed.push(Some(run.clone()), &json!({ "kind": "run.lost", "run": run }));
            }
        }
    }

    /// What commands have written. It is taken before the record is read and shown after it, so that a call's output comes
    /// between its start and its end.
    fn output(&mut self, state: &ServerState) -> Vec<Arc<Event>> {
        let sent = self.others.iter().flat_map(LiveListener::since);
        let others = sent.filter(|sent| sent.from != state.workspace.followers.name).map(|sent| Arc::new(sent.event));
        self.live.since().into_iter().chain(others).collect()
    }

    /// Runs that begin later are read from their beginning, those that are there from their end.
    fn find_runs(&mut self, state: &ServerState) {
        let mut names = run_directories(state.workspace.state.path()).unwrap_or_default();
        let newest = names.split_off(names.len().saturating_sub(WATCHED_RUNS));
        let is_first_look = self.looked.is_none();
        self.runs.retain(|run, _| newest.binary_search(run).is_ok());
        for run in newest {
            if self.runs.contains_key(&run) {
                continue;
            }
            let Ok(directory) = state.workspace.state.run_dir(&run) else { continue };
            let follower = match is_first_look {
                true => Follower::at_end(&directory),
                false => Follower::open(&directory, 0),
            };
            // A run that is just beginning has no journal yet.
            let Ok(follower) = follower else { continue };
            let is_open = state.workspace.state.is_run_open(&run);
            self.runs.insert(run, WatchedRun { follower, has_ended: false, is_open });
        }
    }

    fn look_at_queue(&mut self, feed: &LiveFeed, state: &ServerState) {
        let now = state.workspace.clock.now();
        let asks = state.workspace.approvals.as_ref().and_then(|queue| queue.approvals.asks(now).ok());
        let waiting: BTreeMap<String, String> = asks.into_iter().flatten().map(|ask| (ask.id, ask.run)).collect();
        let appeared = waiting.iter().filter(|(id, _)| !self.waiting.contains_key(*id)).map(|it| (it, "queue.added"));
        let gone = self.waiting.iter().filter(|(id, _)| !waiting.contains_key(*id)).map(|it| (it, "queue.removed"));
        for ((id, run), kind) in appeared.chain(gone) {
            feed.push(Some(run.clone()), &json!({ "kind": kind, "id": id, "run": run }));
        }
        self.waiting = waiting;
    }

    fn look_at_processes(&mut self, feed: &LiveFeed, state: &ServerState) {
        let running = state.workspace.gate.registries().running();
        let running: BTreeSet<String> = running.iter().map(|process| process.facts().id.clone()).collect();
        if running != self.processes {
            feed.push(None, &json!({ "kind": "processes.changed", "running": running.len() }));
            self.processes = running;
        }
    }

    fn look_at_inbox(&mut self, feed: &LiveFeed, state: &ServerState) {
        let inbox = state.workspace.stores.inbox().ok();
        let Some(tasks) = inbox.and_then(|inbox| inbox.newest_tasks(WATCHED_TASKS).ok()) else { return };
        if tasks != self.tasks {
            feed.push(None, &json!({ "kind": "inbox.changed" }));
            self.tasks = tasks;
        }
    }
}
