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

use crate::backend::ClientIdentity;
use crate::client::{ActiveRequest, Client, lock};
use crate::json_rpc::{self, JsonRpcMessage, JsonRpcRequest};
use crate::json_rpc_error::JsonRpcError;
use crate::message_sink::{MessageSink, SharedMessageSink};
use crate::methods::{self, RequestContext};
use crate::protocol_version::ClientProfile;
use crate::server::McpServer;
use crate::shared_input::SharedInput;
use crate::subscriptions;

/// Threads that take turns at reading.
const READERS: usize = 4;

/// Serves the client at the other end of standard input and output, until it hangs up or the server is stopped. Returns
/// when everything that it had begun is over and on record.
pub async fn serve_stdio(server: &Arc<McpServer>) {
    let visitor = ClientIdentity { principal: "local".into(), name: String::new() };
    let client = Client::new(Arc::clone(server), visitor);
    let outlet: SharedMessageSink = Arc::new(StdoutSink { client: Arc::downgrade(&client) });
    *lock(&client.aside) = Some(Arc::clone(&outlet));
    subscriptions::forward(&client);
    let turn = Arc::new(SharedInput::new(std::io::stdin()));
    for _ in 0..READERS {
        let (client, outlet, turn) = (Arc::clone(&client), Arc::clone(&outlet), Arc::clone(&turn));
        let reader = StdinReader { client, outlet, turn, runtime: Handle::current() };
        std::thread::spawn(move || reader.read());
    }
    client.stop.cancelled().await;
    client.leave().await;
}

/// One of the threads that read.
struct StdinReader {
    client: Arc<Client>,
    outlet: SharedMessageSink,
    turn: Arc<SharedInput<Stdin>>,
    runtime: Handle,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
enum LineRead {
    Whole,
    TooLong,
    End,
}

/// What may take longer than the next message.
type RequestFuture = BoxFuture<'static, ()>;

impl StdinReader {
    fn read(self) {
        let _in_runtime = self.runtime.enter();
        let mut line = Vec::new();
        while let Some(job) = self.take(&mut line) {
            if let Some(mut job) = job
                && (&mut job).now_or_never().is_none()
            {
                self.runtime.spawn(job);
            }
            self.turn.message_done();
        }
        self.client.stop.cancel();
    }

    /// Reads a message and does what has to happen in order; what may take longer is returned. None at the end.
    fn take(&self, line: &mut Vec<u8>) -> Option<Option<RequestFuture>> {
        let mut input = self.turn.take();
        let most = self.client.server.options.most_bytes;
        let read = next_line(&mut *input, line, most);
        let taken = match read {
            Ok(LineRead::Whole) if line.trim_ascii().is_empty() => Some(None),
            Ok(LineRead::Whole) => Some(self.accept(line)),
            Ok(LineRead::TooLong) => {
                let fault = JsonRpcError::invalid_request(format!("The message is longer than {most} bytes."));
                self.outlet.send(json_rpc::error(None, &fault));
                Some(None)
            }
            Ok(LineRead::End) | Err(_) => None,
        };
        self.turn.message_read(&input);
        taken
    }

    fn accept(&self, line: &[u8]) -> Option<RequestFuture> {
        match json_rpc::read(line) {
            Ok(JsonRpcMessage::Request(request)) => return self.begin(request),
            Ok(JsonRpcMessage::Notification { method, params }) => methods::note(&self.client, &method, &params),
            Ok(JsonRpcMessage::Answer { id, outcome }) => self.client.answered(&id, outcome),
            Err(unusable) => self.outlet.send(json_rpc::error(unusable.id.as_ref(), &unusable.fault)),
        }
        None
    }

    fn begin(&self, request: JsonRpcRequest) -> Option<RequestFuture> {
        let profile = methods::protocol_version_of(&self.client, &request);
        let begun = profile.and_then(|profile| Ok((profile, self.client.begin(&request.id)?)));
        let (profile, underway) = match begun {
            Ok(begun) => begun,
            Err(fault) => {
                self.outlet.send(json_rpc::error(Some(&request.id), &fault));
                return None;
            }
        };
        let is_handshake = request.method == "initialize";
        let mut job: RequestFuture =
            Box::pin(work(Arc::clone(&self.client), Arc::clone(&self.outlet), request, profile, underway));
        // The handshake decides how later messages are read, so it is over before the next one is.
        if is_handshake && (&mut job).now_or_never().is_some() { None } else { Some(job) }
    }
}

async fn work(
    client: Arc<Client>,
    outlet: SharedMessageSink,
    request: JsonRpcRequest,
    profile: ClientProfile,
    underway: ActiveRequest,
) {
    let _until_it_is_answered = client.work();
    let JsonRpcRequest { id, method, params } = &request;
    let cancel = underway.cancel.clone();
    let asking = RequestContext { client: &client, profile: &profile, params, id, outlet: &outlet, cancel: &cancel };
    let answer = methods::answer(&asking, method).await;
    // Whoever has the answer may use the id again.
    drop(underway);
    // A request that the client has taken back gets no answer.
    if !cancel.is_cancelled() {
        outlet.send(methods::response_message(id, &answer));
    }
}

/// Reads up to the next line break. Of a line that is too long nothing is kept.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>, most: usize) -> std::io::Result<LineRead> {
    line.clear();
    let limit = most as u64 + 1;
    if input.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(LineRead::End);
    }
    if line.len() as u64 == limit && line.last() != Some(&b'\n') {
        line.clear();
        input.skip_until(b'\n')?;
        return Ok(LineRead::TooLong);
    }
    Ok(LineRead::Whole)
}

/// Standard output, one message at a time.
struct StdoutSink {
    client: Weak<Client>,
}

impl MessageSink for StdoutSink {
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
        assert_eq!(read(), (LineRead::Whole, "12345\n".into()));
        assert_eq!(read(), (LineRead::TooLong, String::new()));
        assert_eq!(read(), (LineRead::Whole, "\n".into()));
        assert_eq!(read(), (LineRead::TooLong, String::new()));
        assert_eq!(read(), (LineRead::Whole, "end".into()));
        assert_eq!(read(), (LineRead::End, String::new()));
    }
}
