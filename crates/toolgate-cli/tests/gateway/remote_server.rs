//! The server `speaker.py` as a process on loopback, and what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::world::World;

pub(crate) const SPEAKER: &str = include_str!("speaker.py");

/// A server elsewhere: on loopback, outside of every sandbox.
pub(crate) struct SpeakerServer {
    child: Child,
    pub(crate) port: u16,
}

impl SpeakerServer {
    /// Starts the server with these options.
    pub(crate) fn start(mut options: Value) -> Self {
        options["http"] = json!(true);
        let options = options.to_string();
        let mut command = Command::new("python3");
        command.args(["-c", SPEAKER, &options]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }

    /// Its address.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// A workspace whose user has this server as `remote`, and lets this machine's own address be reached.
    pub(crate) fn world(&self, settings: &str) -> World {
        let world = World::new();
        let rule = "rules = [{ decision = 'allow', host = '127.0.0.1' }]";
        let section = format!("[mcp.servers.remote]\nurl = '{}'\n{settings}\n", self.url("/mcp"));
        world.put(&world.user_config(), format!("{rule}\n{section}"));
        world
    }

    /// Everything that it was asked so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let body = get(&self.url("/requests")).1;
        serde_json::from_str(&body).unwrap()
    }

    /// The messages that it got, by their method.
    pub(crate) fn messages(&self, method: &str) -> Vec<Value> {
        let messages = self.requests().into_iter().filter(|request| request["path"] == "/mcp");
        let read = |mut request: Value| {
            request["body"] = serde_json::from_str(request["body"].as_str().unwrap()).unwrap_or_default();
            request
        };
        messages.map(read).filter(|request| request["body"]["method"] == method).collect()
    }
}

impl Drop for SpeakerServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The head and the body of what is at an address on this machine. No redirect is followed.
pub(crate) fn get(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap());
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Where a redirect leads.
pub(crate) fn location(head: &str) -> String {
    let line = head.lines().find_map(|line| line.strip_prefix("Location: "));
    line.unwrap_or_else(|| panic!("{head}")).to_owned()
}
