//! The HTTP server as programs meet it, over real sockets.

mod abuse;
mod approvals;
mod authentication;
pub(crate) mod client;
mod concurrency;
mod disconnects;
mod limits;
mod mcp;
mod questions;
mod routes;
pub(crate) mod server;
mod tls;
