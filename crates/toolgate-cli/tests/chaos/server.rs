//! A server of the world: `toolgate serve --stdio` with a client that can kill it.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use toolgate_testkit::mcp::McpClient;

use crate::reply::Reply;
use crate::world::World;

/// A running server.
pub(crate) struct Server {
    client: McpClient,
    process: Pid,
    /// Where it writes its warnings.
    errors: PathBuf,
    /// Where it stores what a reply leaves out.
    runs: PathBuf,
}

impl Server {
    pub(crate) fn start(world: &World, name: &str) -> Self {
        let errors = world.path().join(name);
        let mut command = world.program(&["serve", "--stdio"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&errors).unwrap());
        let mut child = command.spawn().unwrap();
        let process = Pid::from_child(&child);
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let wait = move || child.wait().unwrap().code().unwrap_or(-1);
        let mut client = McpClient::connect(input, output, wait, false, json!({}));
        client.initialize();
        Self { client, process, errors, runs: world.state("runs") }
    }

    pub(crate) fn call(&mut self, tool: &str, args: Value) -> Reply {
        Reply::of_server(self.client.call(tool, args), &self.runs)
    }

    /// Asks for a call and doesn't wait for the reply. Gives the number of the request.
    pub(crate) fn begin(&mut self, tool: &str, args: Value) -> u64 {
        self.client.begin("tools/call", json!({ "name": tool, "arguments": args }))
    }

    pub(crate) fn cancel(&mut self, request: u64) {
        self.client.cancel(request);
    }

    pub(crate) fn kill(mut self) {
        rustix::process::kill_process(self.process, Signal::KILL).unwrap();
        self.client.end();
    }

    /// Disconnects, and gives the exit code.
    pub(crate) fn end(mut self) -> i32 {
        self.client.end()
    }

    /// What it wrote to its standard error.
    pub(crate) fn warnings(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }

    pub(crate) fn process(&self) -> Pid {
        self.process
    }
}
