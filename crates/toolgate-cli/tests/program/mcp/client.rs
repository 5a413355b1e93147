//! Clients of `toolgate serve --stdio`.

use std::process::{Command, Stdio};

use serde_json::Value;
use toolgate_testkit::mcp::McpClient;

use crate::world::{PROGRAM, World};

/// A client that has made its handshake.
pub(crate) fn with_handshake(world: &World, capabilities: Value) -> McpClient {
    let mut client = start(world, &[], false, capabilities);
    client.initialize();
    client
}

/// A client whose requests carry its own information.
pub(crate) fn stateless(world: &World, capabilities: Value) -> McpClient {
    start(world, &[], true, capabilities)
}

/// Starts the program with these flags; the client has sent nothing yet.
pub(crate) fn start(world: &World, flags: &[&str], is_stateless: bool, capabilities: Value) -> McpClient {
    connect(world.command(PROGRAM), flags, is_stateless, capabilities)
}

/// Starts a program, which may be another user's, with these flags; the client has sent nothing yet.
pub(crate) fn connect(mut command: Command, flags: &[&str], is_stateless: bool, capabilities: Value) -> McpClient {
    command.args(["serve", "--stdio"]).args(flags).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let wait = move || child.wait().unwrap().code().unwrap_or(-1);
    McpClient::connect(input, output, wait, is_stateless, capabilities)
}
