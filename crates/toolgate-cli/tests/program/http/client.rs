//! A client of a hundred lines: it sends exactly what a test says, well formed or not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// One connection, which is kept open between requests.
pub(crate) struct Client {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
    token: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // A test that hangs says where.
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        Self { address, stream: BufReader::new(stream), token: token.map(str::to_owned) }
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.request("GET", path, &[], None)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Response {
        self.request("POST", path, &[], Some(body))
    }

    pub(crate) fn delete(&mut self, path: &str) -> Response {
        self.request("DELETE", path, &[], None)
    }

    /// A call, answered with its reply.
    pub(crate) fn call(&mut self, tool: &str, args: Value) -> Value {
        let response = self.post("/v1/calls", &serde_json::json!({ "name": tool, "args": args }));
        assert_eq!(response.status, 200, "{response:?}");
        response.json()
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Response {
        self.send(method, path, more, body);
        self.receive()
    }

    /// Sends a request and doesn't wait.
    pub(crate) fn send(&mut self, method: &str, path: &str, more: &[(&str, &str)], body: Option<&Value>) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !more.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        if let Some(token) = self.token.as_ref().filter(|_| !more.iter().any(|(name, _)| *name == "Authorization")) {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        for (name, value) in more {
            head += &format!("{name}: {value}\r\n");
        }
        let body = body.map(ToString::to_string).unwrap_or_default();
        if !body.is_empty() {
            head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        self.raw(format!("{head}\r\n{body}").as_bytes());
    }

    /// Sends these very bytes. A server that has hung up already is no fault of the client's.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub(crate) fn leave(self) {
        let _ = self.stream.get_ref().shutdown(Shutdown::Both);
    }

    pub(crate) fn receive(&mut self) -> Response {
        let mut response = self.receive_head().expect("the server answers");
        response.body = self.body(&response);
        response
    }

    /// The head alone, for a stream; none when the server hung up.
    pub(crate) fn receive_head(&mut self) -> Option<Response> {
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        let mut headers = Vec::new();
        while let Some(line) = self.line().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Some(Response { status, headers, body: Vec::new() })
    }

    fn body(&mut self, response: &Response) -> Vec<u8> {
        if let Some(length) = response.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut body).unwrap();
            return body;
        }
        let mut body = Vec::new();
        if response.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk() {
                body.extend(chunk);
            }
        }
        body
    }

    /// The next piece of a stream; none at its end.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let length = usize::from_str_radix(&self.line()?, 16).ok()?;
        let mut chunk = vec![0; length + 2];
        self.stream.read_exact(&mut chunk).ok()?;
        chunk.truncate(length);
        Some(chunk).filter(|chunk| !chunk.is_empty())
    }

    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok().filter(|&count| count > 0)?;
        Some(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

impl Response {
    pub(crate) fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|fault| panic!("not JSON ({fault}): {self:?}"))
    }

    /// A message of MCP: the body, or the last event of a stream, which an answer becomes when it takes long.
    pub(crate) fn message(&self) -> Value {
        if self.header("content-type") != Some("text/event-stream") {
            return self.json();
        }
        let text = String::from_utf8(self.body.clone()).unwrap();
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(last.unwrap_or_else(|| panic!("no message: {text}"))).unwrap()
    }

    /// The code of a problem.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("no problem: {self:?}")).to_owned()
    }
}
