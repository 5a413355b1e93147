//! Speaks MCP: our tools outward.
//!
//! [`serve_stdio`] and [`service`] bring messages in, `methods` answers them, and every call goes through the gate like
//! anyone else's. Both eras of the protocol are served: the one with a handshake (up to 2025-11-25) and the one in which
//! each request stands alone (2026-07-28). Whoever starts a server is its [`ServerBackend`] and says what a session is.
//!
//! The protocol is written by hand on `serde_json`. Libraries decode a message before we see it; here the bytes that
//! came are the value that is judged, read strictly, and a call that needs no waiting is answered on the thread that
//! read it.

mod approver;
mod backend;
mod call;
mod call_context;
mod client;
mod conformance;
mod elicitation;
mod http;
mod json_rpc;
mod json_rpc_error;
mod message_sink;
mod methods;
mod notifications;
mod protocol_version;
mod questions;
mod request_state;
mod resources;
mod roots;
mod server;
mod shared_input;
mod stdio;
mod subscriptions;
mod suspended_calls;
mod tool_result;
mod tools;

pub use backend::{ClientHandlers, ClientIdentity, McpSession, ServerBackend};
pub use conformance::tools as conformance_tools;
pub use http::service;
pub use server::{McpOptions, McpServer};
pub use stdio::serve_stdio;
