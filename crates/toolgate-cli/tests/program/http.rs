//! The HTTP server as programs meet it, over real sockets.

mod abuse;
mod approvals;
pub(crate) mod client;
mod crowd;
mod door;
mod leaving;
mod limits;
mod mcp;
mod questions;
mod routes;
pub(crate) mod server;
mod tls;
