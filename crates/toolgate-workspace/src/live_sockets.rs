//! Live events between programs: whoever follows a workspace opens a datagram socket in the user's own directory, and every
//! program that runs commands in that workspace sends its live events to each of these sockets. Nothing is stored and nobody
//! waits: a follower that reads too slowly misses output, and while nobody follows, nothing is sent.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_contract::Event;
use toolgate_runtime::EventSink;

use crate::sandbox_profile::create_private_directory;

/// How often a sender looks for followers, while it has something to send.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// How often a listener checks whether it is still wanted.
const CLOSE_INTERVAL: Duration = Duration::from_millis(250);

/// The largest message: two pieces of output, each of whose bytes may be escaped.
const MAX_MESSAGE: usize = 256 * 1024;

/// How many messages a listener holds until they are taken.
const BACKLOG: usize = 1024;

/// Sends the live events of one program to all that follow its workspace.
pub struct LiveSockets {
    directory: PathBuf,
    /// The name under which this program sends.
    pub name: String,
    followers: Mutex<LiveFollowers>,
}

/// The sockets that were found last.
#[derive(Default)]
struct LiveFollowers {
    looked: Option<Instant>,
    directory: Option<File>,
    names: Vec<String>,
    socket: Option<UnixDatagram>,
}

impl LiveSockets {
    /// Sends to the sockets in this directory, which need not exist.
    pub fn new(directory: PathBuf, name: String) -> Self {
        Self { directory, name, followers: Mutex::default() }
    }

    /// Follows all programs that send to this directory, this one included.
    pub fn listen(&self) -> io::Result<LiveListener> {
        LiveListener::open(&self.directory)
    }
}

impl EventSink for LiveSockets {
    /// Recorded events are read from the record.
    fn event(&self, _event: &Event) {}

    fn live(&self, event: &Event) {
        let mut followers = self.followers.lock();
        followers.look(&self.directory);
        if !followers.names.is_empty() {
            followers.send(json!({ "from": self.name, "event": event }).to_string().as_bytes());
        }
    }

    fn is_watched(&self) -> bool {
        let mut followers = self.followers.lock();
        followers.look(&self.directory);
        !followers.names.is_empty()
    }
}

impl LiveFollowers {
    #[allow(clippy::disallowed_methods, reason = "looks through the user's own sockets")]
    fn look(&mut self, directory: &Path) {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK_INTERVAL) {
            return;
        }
        self.looked = Some(Instant::now());
        self.names = std::fs::read_dir(directory).map(socket_names).unwrap_or_default();
        self.directory = if self.names.is_empty() { None } else { File::open(directory).ok() };
    }

    /// Sends to each follower. One that was killed is removed; one that is too slow misses this.
    #[allow(clippy::disallowed_methods, reason = "removes a socket that nobody listens on")]
    fn send(&mut self, message: &[u8]) {
        if self.socket.is_none() {
            self.socket = UnixDatagram::unbound().ok().filter(|socket| socket.set_nonblocking(true).is_ok());
        }
        let (Some(socket), Some(directory)) = (&self.socket, &self.directory) else { return };
        self.names.retain(|name| {
            let path = socket_path(directory, name);
            match socket.send_to(message, &path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    let _ = std::fs::remove_file(&path);
                    false
                }
                _ => true,
            }
        });
    }
}

fn socket_names(entries: std::fs::ReadDir) -> Vec<String> {
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".sock")).collect()
}

/// Through the directory's descriptor, since the path of a Unix socket is limited to about a hundred bytes.
fn socket_path(directory: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

/// A live event, and the program that sent it.
pub struct SentEvent {
    /// The [name](LiveSockets::name) of the program.
    pub from: String,
    /// The event.
    pub event: Event,
}

/// Receives the live events of all programs that work in one workspace. Dropping it closes the socket.
pub struct LiveListener {
    socket: PathBuf,
    is_closed: Arc<AtomicBool>,
    received: Receiver<SentEvent>,
}

impl LiveListener {
    #[allow(clippy::disallowed_methods, reason = "makes a socket in the user's own directory")]
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        create_private_directory(directory)?;
        // The time makes another listener of this program have another name.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{}.sock", std::process::id(), now.as_nanos());
        let socket = UnixDatagram::bind(socket_path(&File::open(directory)?, &name))?;
        socket.set_read_timeout(Some(CLOSE_INTERVAL))?;
        let (sender, received) = sync_channel(BACKLOG);
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        std::thread::Builder::new().name("live output".into()).spawn(move || receive(&socket, &sender, &closed))?;
        Ok(Self { socket: directory.join(name), is_closed, received })
    }

    /// The events since the last time, in order.
    pub fn since(&self) -> Vec<SentEvent> {
        self.received.try_iter().collect()
    }
}

impl Drop for LiveListener {
    #[allow(clippy::disallowed_methods, reason = "removes the socket that it made")]
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn receive(socket: &UnixDatagram, events: &SyncSender<SentEvent>, is_closed: &AtomicBool) {
    let mut message = vec![0; MAX_MESSAGE];
    while !is_closed.load(Ordering::Relaxed) {
        // An error is the timeout, after which it is checked whether this is still wanted.
        let Ok(length) = socket.recv(&mut message) else { continue };
        let Some(sent) = parse(&message[..length]) else { continue };
        if let Err(TrySendError::Disconnected(_)) = events.try_send(sent) {
            return;
        }
    }
}

fn parse(message: &[u8]) -> Option<SentEvent> {
    let mut message: Value = serde_json::from_slice(message).ok()?;
    let from = message["from"].as_str()?.to_owned();
    Some(SentEvent { from, event: serde_json::from_value(message["event"].take()).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> Event {
        let output = json!({ "time": "2026-01-01T00:00:00Z", "run": "run_1", "tool_call_id": "c", "kind": "process.output",
            "process": "p", "stream": "stdout", "text": text });
        serde_json::from_value(output).unwrap()
    }

    fn wait_for(listener: &LiveListener, count: usize) -> Vec<SentEvent> {
        let mut all = Vec::new();
        for _ in 0..2_000 {
            all.extend(listener.since());
            if all.len() >= count {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        all
    }

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn everybody_who_follows_gets_what_is_sent_and_nothing_is_sent_to_nobody() {
        let (place, long) = (directory(), "x".repeat(120));
        let sockets = place.path().join(long);
        let sender = || LiveSockets::new(sockets.clone(), "me".into());
        assert!(!sender().is_watched(), "nobody follows");
        let (one, two) = (LiveListener::open(&sockets).unwrap(), LiveListener::open(&sockets).unwrap());
        let watched = sender();
        assert!(watched.is_watched());
        watched.live(&output("a"));
        watched.live(&output("b"));
        for listener in [&one, &two] {
            let events = wait_for(listener, 2);
            assert_eq!(events.iter().map(|sent| sent.event.clone()).collect::<Vec<_>>(), [output("a"), output("b")]);
            assert!(events.iter().all(|sent| sent.from == "me"));
        }
        drop((one, two));
        assert!(!sender().is_watched(), "they have left");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "looks at a directory of its own")]
    fn the_socket_of_a_killed_follower_is_removed_and_a_slow_one_blocks_nobody() {
        let place = directory();
        let sockets = place.path().join("live");
        let slow = LiveListener::open(&sockets).unwrap();
        let dead = sockets.join("1-1.sock");
        drop(UnixDatagram::bind(&dead).unwrap());
        let sender = LiveSockets::new(sockets.clone(), "me".into());
        // Far more than a queue holds, while nobody takes anything.
        for _ in 0..4 * BACKLOG {
            sender.live(&output("text"));
        }
        assert!(!dead.exists(), "nobody listens there");
        assert!(!wait_for(&slow, 1).is_empty());
    }
}
