//! A server of its own for each test.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

use super::client::Client;
use crate::world::{PROGRAM, World};

/// A running server. Dropped, it is ended.
pub(crate) struct Server {
    pub(crate) world: World,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    child: Child,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_in(World::new(), &[])
    }

    pub(crate) fn start_in(world: World, more: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", world, more)
    }

    pub(crate) fn start_at(address: &str, world: World, more: &[&str]) -> Self {
        let args = ["--json", "serve", "--listen", address];
        let mut child = world.command(PROGRAM).args(args).args(more).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let address = ready["listening"].as_str().unwrap().split_once("://").unwrap().1.parse().unwrap();
        let token = std::fs::read_to_string(Path::new(ready["token_file"].as_str().unwrap())).unwrap();
        Self { world, address, token: token.trim().to_owned(), child }
    }

    /// A connection with the owner's token.
    pub(crate) fn owner(&self) -> Client {
        Client::new(self.address, Some(&self.token))
    }

    /// A connection without any.
    pub(crate) fn stranger(&self) -> Client {
        Client::new(self.address, None)
    }

    /// A session as the owner wants it, and a connection with its token.
    pub(crate) fn session(&self, wanted: &Value) -> (Value, Client) {
        let response = self.owner().post("/v1/sessions", wanted);
        assert_eq!(response.status, 201, "{response:?}");
        let session = response.json();
        let client = Client::new(self.address, session["token"].as_str());
        (session, client)
    }

    /// The events of a run, as the server tells them.
    pub(crate) fn events(&self, run: &str) -> Vec<Value> {
        let response = self.owner().get(&format!("/v1/runs/{run}/events?limit=10000"));
        assert_eq!(response.status, 200, "{response:?}");
        response.json()["events"].as_array().unwrap().clone()
    }

    /// Codes of the refusals that were recorded.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let runs = self.owner().get("/v1/runs?session=http").json();
        let run = runs["runs"][0]["id"].as_str().unwrap().to_owned();
        let events = self.events(&run);
        let refused = events.iter().filter(|event| event["kind"] == json!("request.refused"));
        refused.map(|event| event["code"].as_str().unwrap().to_owned()).collect()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
