//! The HTTP server on a test workspace, without a program around it: its router, and where connections matter a socket.
#![allow(clippy::disallowed_methods, reason = "tests look at the files of their workspace")]

mod approvals;
mod artifacts;
mod authentication;
mod calls;
mod client_tools;
mod console;
mod events;
mod limits;
mod metrics;
mod openapi;
mod questions;
mod sessions;
mod test_server;
