//! A scripted model server on loopback: real HTTP, real server-sent events, real faults.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Longer than any limit of a test.
const A_LONG_TIME: Duration = Duration::from_secs(100_000);

/// What the server does with one request.
#[derive(Clone)]
pub(crate) struct Play {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<Piece>,
    /// Whether the response ends as HTTP requires.
    is_whole: bool,
}

#[derive(Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Wait(Duration),
    /// The same bytes repeatedly, with a pause between.
    Forever(Vec<u8>, Duration),
}

impl Play {
    /// Answers with these events.
    pub(crate) fn events(text: impl Into<String>) -> Self {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        Self { status: "200 OK", headers, body: vec![Piece::Bytes(text.into().into_bytes())], is_whole: true }
    }

    /// Responds without streaming, whatever was requested.
    pub(crate) fn json(text: &str) -> Self {
        let headers = vec![("content-type", "application/json; charset=utf-8".to_owned())];
        Self { headers, ..Self::events(text) }
    }

    /// Fails.
    pub(crate) fn status(status: &'static str, body: Value) -> Self {
        Self { status, body: vec![Piece::Bytes(body.to_string().into_bytes())], ..Self::events("") }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sends this much and closes the connection.
    pub(crate) fn cut(text: &str) -> Self {
        Self { is_whole: false, ..Self::events(text) }
    }

    /// Sends this much and then nothing more.
    pub(crate) fn stalls(text: &str) -> Self {
        let mut play = Self::events(text);
        play.body.push(Piece::Wait(A_LONG_TIME));
        play
    }

    /// Never ends.
    pub(crate) fn endless(text: &str, pause: Duration) -> Self {
        Self { body: vec![Piece::Forever(text.into(), pause)], ..Self::events("") }
    }

    /// A chat completion with this text.
    pub(crate) fn says(text: &str) -> Self {
        Self::events(chat(&[json!({ "content": text })], "stop"))
    }

    /// A chat completion with this call, its arguments in two pieces.
    pub(crate) fn calls(tool: &str, arguments: &str) -> Self {
        let (first, second) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
        let begins = json!({ "tool_calls": [{
            "index": 0, "id": "call_1", "type": "function", "function": { "name": tool, "arguments": first } }] });
        let goes_on = json!({ "tool_calls": [{ "index": 0, "function": { "arguments": second } }] });
        Self::events(chat(&[begins, goes_on], "tool_calls"))
    }
}

/// The chunks of a chat completion, with 10 tokens in and 5 out.
pub(crate) fn chat(deltas: &[Value], finish: &str) -> String {
    let chunk = |delta: &Value, finish: Value| json!({ "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    let mut chunks: Vec<Value> = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    chunks.push(chunk(&json!({}), json!(finish)));
    chunks.push(json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5 } }));
    let lines: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    format!("{lines}data: [DONE]\n\n")
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The server. It plays its responses in order, and repeats the last one.
pub(crate) struct ModelServer {
    pub(crate) url: String,
    log: Arc<ServerLog>,
}

/// What happened on all connections.
#[derive(Default)]
struct ServerLog {
    requests: Mutex<Vec<Seen>>,
    chunks: AtomicUsize,
}

impl ModelServer {
    pub(crate) async fn start(plays: impl IntoIterator<Item = Play>) -> Self {
        let plays: Vec<Play> = plays.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log: Arc<ServerLog> = Arc::default();
        let shared = Arc::clone(&log);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (plays, log) = (plays.clone(), Arc::clone(&shared));
                tokio::spawn(async move { drop(serve(stream, &plays, &log).await) });
            }
        });
        Self { url, log }
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.log.requests.lock().unwrap().clone()
    }

    /// How many pieces of bodies were sent so far.
    pub(crate) fn sent_chunks(&self) -> usize {
        self.log.chunks.load(Ordering::Relaxed)
    }
}

/// One request on one connection.
async fn serve(stream: TcpStream, plays: &[Play], log: &ServerLog) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let request = read(&mut stream).await?;
    let play = {
        let mut requests = log.requests.lock().unwrap();
        requests.push(request);
        plays[(requests.len() - 1).min(plays.len() - 1)].clone()
    };
    let headers: String = play.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {}\r\n{headers}connection: close\r\ntransfer-encoding: chunked\r\n\r\n", play.status);
    stream.write_all(head.as_bytes()).await?;
    for piece in &play.body {
        match piece {
            Piece::Bytes(bytes) => {
                write_chunk(&mut stream, bytes).await?;
                log.chunks.fetch_add(1, Ordering::Relaxed);
            }
            Piece::Wait(time) => tokio::time::sleep(*time).await,
            Piece::Forever(bytes, pause) => loop {
                write_chunk(&mut stream, bytes).await?;
                log.chunks.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(*pause).await;
            },
        }
    }
    if play.is_whole {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.flush().await
}

async fn write_chunk(stream: &mut BufReader<TcpStream>, bytes: &[u8]) -> std::io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
    stream.write_all(bytes).await?;
    stream.write_all(b"\r\n").await?;
    stream.flush().await
}

async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Seen { path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}
