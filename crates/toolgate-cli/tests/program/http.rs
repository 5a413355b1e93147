//! The HTTP server of the program, over real sockets: processes, signals, flags, TLS, other terminals. What needs no
//! program is tested in `toolgate-console`.

mod abuse;
mod approvals;
mod authentication;
pub(crate) mod client;
mod concurrency;
mod disconnects;
mod limits;
mod mcp;
mod mcp_sessions;
mod questions;
mod routes;
pub(crate) mod server;
mod tls;
