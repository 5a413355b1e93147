//! MCP over standard input and output: one client, one message a line.
//!
//! A few threads take turns at reading. Whoever has read a line also works on it, and another reads on if that takes
//! long; so a call that needs no waiting is answered without a change of threads, and a long one never keeps a
//! cancellation from being read. What has to wait goes on in the runtime.

use std::io::{BufRead, Read, Stdin, Write};
use std::sync::{Arc, Weak};

use futures_util::FutureExt;
use tokio::runtime::Handle;
use toolgate_contract::BoxFuture;

use crate::client::{Client, Underway, lock};
use crate::era::Manner;
use crate::fault::Fault;
use crate::host::Visitor;
use crate::listen;
use crate::message::{self, Message, Request};
use crate::methods::{self, Asking};
use crate::outlet::{Outlet, SharedOutlet};
use crate::server::Server;
use crate::turn::Turn;

/// Threads that take turns at reading.
const READERS: usize = 4;

/// Serves the client at the other end of standard input and output, until it hangs up or the server is stopped. Returns
/// when everything that it had begun is over and on record.
pub async fn serve_stdio(server: &Arc<Server>) {
    let visitor = Visitor { principal: "local".into(), name: String::new() };
    let client = Client::new(Arc::clone(server), visitor);
    let outlet: SharedOutlet = Arc::new(StandardOutput { client: Arc::downgrade(&client) });
    *lock(&client.aside) = Some(Arc::clone(&outlet));
    listen::forward(&client);
    let turn = Arc::new(Turn::new(std::io::stdin()));
    for _ in 0..READERS {
        let (client, outlet, turn) = (Arc::clone(&client), Arc::clone(&outlet), Arc::clone(&turn));
        let reader = Reader { client, outlet, turn, runtime: Handle::current() };
        std::thread::spawn(move || reader.read());
    }
    client.stop.cancelled().await;
    client.leave().await;
}

/// One of the threads that read.
struct Reader {
    client: Arc<Client>,
    outlet: SharedOutlet,
    turn: Arc<Turn<Stdin>>,
    runtime: Handle,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole,
    TooLong,
    End,
}

/// What may take longer than the next message.
type Job = BoxFuture<'static, ()>;

impl Reader {
    fn read(self) {
        let _in_runtime = self.runtime.enter();
        let mut line = Vec::new();
        while let Some(job) = self.take(&mut line) {
            if let Some(mut job) = job
                && (&mut job).now_or_never().is_none()
            {
                self.runtime.spawn(job);
            }
            self.turn.rested();
        }
        self.client.stop.cancel();
    }

    /// Reads a message and does what has to happen in order; what may take longer is returned. None at the end.
    fn take(&self, line: &mut Vec<u8>) -> Option<Option<Job>> {
        let mut input = self.turn.take();
        let most = self.client.server.options.most_bytes;
        let read = next_line(&mut *input, line, most);
        let taken = match read {
            Ok(Line::Whole) if line.trim_ascii().is_empty() => Some(None),
            Ok(Line::Whole) => Some(self.accept(line)),
            Ok(Line::TooLong) => {
                let fault = Fault::invalid_request(format!("The message is longer than {most} bytes."));
                self.outlet.send(message::error(None, &fault));
                Some(None)
            }
            Ok(Line::End) | Err(_) => None,
        };
        self.turn.noted(&input);
        taken
    }

    fn accept(&self, line: &[u8]) -> Option<Job> {
        match message::read(line) {
            Ok(Message::Request(request)) => return self.begin(request),
            Ok(Message::Notification { method, params }) => methods::note(&self.client, &method, &params),
            Ok(Message::Answer { id, outcome }) => self.client.answered(&id, outcome),
            Err(unusable) => self.outlet.send(message::error(unusable.id.as_ref(), &unusable.fault)),
        }
        None
    }

    fn begin(&self, request: Request) -> Option<Job> {
        let manner = methods::manner_of(&self.client, &request);
        let begun = manner.and_then(|manner| Ok((manner, self.client.begin(&request.id)?)));
        let (manner, underway) = match begun {
            Ok(begun) => begun,
            Err(fault) => {
                self.outlet.send(message::error(Some(&request.id), &fault));
                return None;
            }
        };
        let is_handshake = request.method == "initialize";
        let mut job: Job =
            Box::pin(work(Arc::clone(&self.client), Arc::clone(&self.outlet), request, manner, underway));
        // The handshake decides how later messages are read, so it is over before the next one is.
        if is_handshake && (&mut job).now_or_never().is_some() { None } else { Some(job) }
    }
}

async fn work(client: Arc<Client>, outlet: SharedOutlet, request: Request, manner: Manner, underway: Underway) {
    let _until_it_is_answered = client.work();
    let Request { id, method, params } = &request;
    let cancel = underway.cancel.clone();
    let asking = Asking { client: &client, manner: &manner, params, id, outlet: &outlet, cancel: &cancel };
    let answer = methods::answer(&asking, method).await;
    // Whoever has the answer may use the id again.
    drop(underway);
    // A request that the client has taken back gets no answer.
    if !cancel.is_cancelled() {
        outlet.send(methods::worded(id, &answer));
    }
}

/// Reads up to the next line break. Of a line that is too long nothing is kept.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>, most: usize) -> std::io::Result<Line> {
    line.clear();
    let limit = most as u64 + 1;
    if input.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(Line::End);
    }
    if line.len() as u64 == limit && line.last() != Some(&b'\n') {
        line.clear();
        input.skip_until(b'\n')?;
        return Ok(Line::TooLong);
    }
    Ok(Line::Whole)
}

/// Standard output, one message at a time.
struct StandardOutput {
    client: Weak<Client>,
}

impl Outlet for StandardOutput {
    fn send(&self, mut message: String) {
        message.push('\n');
        let mut output = std::io::stdout().lock();
        let sent = output.write_all(message.as_bytes()).and_then(|()| output.flush());
        if sent.is_err()
            && let Some(client) = self.client.upgrade()
        {
            client.stop.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let mut input: &[u8] = b"12345\n1234567\n\n123456\nend";
        let mut line = Vec::new();
        let mut read = || {
            let kind = next_line(&mut input, &mut line, 5).unwrap();
            (kind, String::from_utf8(line.clone()).unwrap())
        };
        assert_eq!(read(), (Line::Whole, "12345\n".into()));
        assert_eq!(read(), (Line::TooLong, String::new()));
        assert_eq!(read(), (Line::Whole, "\n".into()));
        assert_eq!(read(), (Line::TooLong, String::new()));
        assert_eq!(read(), (Line::Whole, "end".into()));
        assert_eq!(read(), (Line::End, String::new()));
    }
}
