//! The HTTP server as programs meet it, over real sockets.

mod abuse;
mod approvals;
mod client;
mod crowd;
mod door;
mod leaving;
mod mcp;
mod routes;
mod server;
