//! Speaks MCP: our tools outward.
//!
//! [`serve_stdio`] and [`service`] bring messages in, `methods` answers them, and every call goes through the gate like
//! anyone else's. Both eras of the protocol are served: the one with a handshake (up to 2025-11-25) and the one in which
//! each request stands alone (2026-07-28). Whoever starts a server is its [`Host`] and says what a session is.
//!
//! The protocol is written by hand on `serde_json`. Libraries decode a message before we see it; here the bytes that
//! came are the value that is judged, read strictly, and a call that needs no waiting is answered on the thread that
//! read it.

mod approver;
mod call;
mod client;
mod conformance;
mod era;
mod fault;
mod form;
mod host;
mod http;
mod inquiry;
mod link;
mod listen;
mod message;
mod methods;
mod outlet;
mod pending;
mod resources;
mod result;
mod roots;
mod seal;
mod server;
mod stdio;
mod tools;
mod turn;
mod watch;

pub use conformance::tools as conformance_tools;
pub use host::{Guest, Host, Present, Visitor};
pub use http::service;
pub use server::{Options, Server};
pub use stdio::serve_stdio;
