//! Other people's tools behind the gate, end to end: MCP servers that are programs or elsewhere, of both protocol versions, friendly and
//! hostile ones, and real ones.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

mod attacks;
#[path = "../program/mcp/client.rs"]
#[allow(dead_code, reason = "shared with the tests of the program")]
mod client;
mod configuration;
mod dialects;
mod logins;
mod protocols;
mod real_servers;
mod remote_server;
mod replays;
mod servers;
#[path = "../program/world.rs"]
mod world;
