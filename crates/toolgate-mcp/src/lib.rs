//! Serves the gate's tools over MCP.
//!
//! [`serve_stdio`] and [`service`] read messages, `methods` answers them, and every call goes through the gate like
//! any other. Both protocol versions are served: with a handshake (up to 2025-11-25) and with requests that carry their
//! own client information (2026-07-28). An [`McpServer`] serves one workspace; each client gets a session and a run of
//! its own.
//!
//! The protocol is implemented here on `serde_json`, without an MCP library: messages are parsed strictly, so that the
//! arguments that policy judges are the arguments that run, and a call that needs no waiting is answered on the thread
//! that read it.

mod approver;
mod call;
mod call_context;
mod client;
mod elicitation;
mod extension;
mod http;
mod json_rpc;
mod json_rpc_error;
mod mcp_session;
mod message_sink;
mod methods;
mod notifications;
mod protocol_version;
mod questions;
mod request_state;
mod resources;
mod resumed_work;
mod roots;
mod server;
mod server_lists;
mod shared_input;
mod stdio;
mod subscriptions;
mod suspended_calls;
mod tool_result;
mod tools;

pub use extension::{ClientCall, ExtensionRequest, ServerExtension};
pub use http::service;
pub use json_rpc_error::JsonRpcError;
pub use mcp_session::ClientIdentity;
pub use server::{ListKind, McpOptions, McpServer};
pub use stdio::{serve_stdio, serve_stream};
