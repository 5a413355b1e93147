//! The MCP server on a test workspace, without a program around it: over a pipe as on standard input and output, and over
//! the router of the HTTP endpoint.
#![allow(clippy::disallowed_methods, reason = "tests look at the files of their workspace")]

mod approvals;
mod backend;
mod calls;
mod http;
mod http_client;
mod lists;
mod messages;
mod questions;
mod request_state;
mod resources;
mod stdio_client;
