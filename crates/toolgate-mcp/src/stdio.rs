//! MCP over standard input and output: one client, one message a line.
//!
//! A few threads take turns at reading. The thread that read a line also works on it, and another one reads on if that
//! takes long: a call that needs no waiting is answered without a change of threads, and a long one never keeps a
//! cancellation from being read. Whatever has to wait goes on in the runtime.

use std::io::{BufRead, Read, Write};
use std::sync::{Arc, Weak};

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use toolgate_contract::{BoxFuture, counted};

use crate::client::{ActiveRequest, Client};
use crate::json_rpc::{self, JsonRpcMessage, JsonRpcRequest};
use crate::json_rpc_error::JsonRpcError;
use crate::mcp_session::ClientIdentity;
use crate::message_sink::{MessageSink, SharedMessageSink};
use crate::methods::{self, RequestContext};
use crate::protocol_version::ClientProfile;
use crate::resumed_work;
use crate::server::McpServer;
use crate::shared_input::SharedInput;
use crate::subscriptions;

/// Threads that take turns at reading.
const READERS: usize = 4;

/// Serves the client at the other end of standard input and output, until it disconnects or the server is stopped.
/// Returns when everything that the client began has ended and is recorded.
pub async fn serve_stdio(server: &Arc<McpServer>) {
    serve_stream(server, std::io::stdin(), std::io::stdout()).await;
}

/// Serves the client at the other end of a pair of streams, as [`serve_stdio`] does. Reading and writing block, each on
/// a thread of its own.
pub async fn serve_stream(
    server: &Arc<McpServer>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) {
    let identity = ClientIdentity { principal: "local".into(), name: String::new() };
    let client = Client::new(Arc::clone(server), identity, None);
    let sink: SharedMessageSink = Arc::new(WriterSink { client: Arc::downgrade(&client), output: Mutex::new(output) });
    *client.notifications.lock() = Some(Arc::clone(&sink));
    subscriptions::forward(&client);
    let input = Arc::new(SharedInput::new(input));
    for _ in 0..READERS {
        let (client, sink, input) = (Arc::clone(&client), Arc::clone(&sink), Arc::clone(&input));
        let reader = MessageReader { client, sink, input, runtime: Handle::current() };
        std::thread::spawn(move || reader.run());
    }
    client.stop.cancelled().await;
    client.disconnect().await;
}

/// One of the threads that read.
struct MessageReader<R> {
    client: Arc<Client>,
    sink: SharedMessageSink,
    input: Arc<SharedInput<R>>,
    runtime: Handle,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
enum LineRead {
    Whole,
    TooLong,
    End,
}

impl<R: Read> MessageReader<R> {
    fn run(self) {
        let _in_runtime = self.runtime.enter();
        let mut line = Vec::new();
        while let Some(answering) = self.next(&mut line) {
            if let Some(answering) = answering {
                resumed_work::begin(answering, &self.runtime);
            }
            self.input.message_done();
        }
        self.client.stop.cancel();
    }

    /// Reads a message and does what has to happen in order; what may take longer is returned. None at the end of input.
    fn next(&self, line: &mut Vec<u8>) -> Option<Option<BoxFuture<'static, ()>>> {
        let mut input = self.input.take();
        let max = self.client.server.options.max_message_bytes;
        let taken = match next_line(&mut *input, line, max) {
            Ok(LineRead::Whole) if line.trim_ascii().is_empty() => Some(None),
            Ok(LineRead::Whole) => Some(self.accept(line)),
            Ok(LineRead::TooLong) => {
                let fault =
                    JsonRpcError::invalid_request(format!("The message is longer than {}.", counted(max, "byte")));
                self.sink.send(json_rpc::error(None, &fault));
                Some(None)
            }
            Ok(LineRead::End) | Err(_) => None,
        };
        self.input.message_read(&input);
        taken
    }

    fn accept(&self, line: &[u8]) -> Option<BoxFuture<'static, ()>> {
        match json_rpc::read(line) {
            Ok(JsonRpcMessage::Request(request)) => return self.begin(request),
            Ok(JsonRpcMessage::Notification { method, params }) => {
                methods::handle_notification(&self.client, &method, &params);
            }
            Ok(JsonRpcMessage::Answer { id, outcome }) => self.client.resolve(&id, outcome),
            Err(invalid) => self.sink.send(json_rpc::error(invalid.id.as_ref(), &invalid.fault)),
        }
        None
    }

    fn begin(&self, request: JsonRpcRequest) -> Option<BoxFuture<'static, ()>> {
        let profile = methods::profile_of(&self.client, &request);
        let begun = profile.and_then(|profile| Ok((profile, self.client.begin(&request.id)?)));
        let (profile, active) = match begun {
            Ok(begun) => begun,
            Err(fault) => {
                self.sink.send(json_rpc::error(Some(&request.id), &fault));
                return None;
            }
        };
        let is_handshake = request.method == "initialize";
        let mut answering: BoxFuture<'static, ()> =
            Box::pin(answer(Arc::clone(&self.client), Arc::clone(&self.sink), request, profile, active));
        // The handshake decides how later messages are read, so it ends before the next message is read.
        if is_handshake && (&mut answering).now_or_never().is_some() { None } else { Some(answering) }
    }
}

async fn answer(
    client: Arc<Client>,
    sink: SharedMessageSink,
    request: JsonRpcRequest,
    profile: ClientProfile,
    active: ActiveRequest,
) {
    let _until_it_is_answered = client.activity();
    let JsonRpcRequest { id, method, params } = &request;
    let cancel = active.cancel.clone();
    let context = RequestContext { client: &client, profile: &profile, params, id, sink: &sink, cancel: &cancel };
    let answer = methods::answer(&context, method).await;
    // A client that has the answer may use the id again.
    drop(active);
    // A cancelled request gets no answer.
    if !cancel.is_cancelled() {
        sink.send(methods::response_message(id, &answer));
    }
}

/// Reads up to the next line break. A line that is too long is skipped.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>, max: usize) -> std::io::Result<LineRead> {
    line.clear();
    let limit = max as u64 + 1;
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

/// Writes one message a line. A client that can't be written to is disconnected.
struct WriterSink<W> {
    client: Weak<Client>,
    output: Mutex<W>,
}

impl<W: Write + Send> MessageSink for WriterSink<W> {
    fn send(&self, mut message: String) {
        message.push('\n');
        let mut output = self.output.lock();
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
    fn a_line_that_is_too_long_is_skipped() {
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
