//! HTTP: calls, events, approvals (C-63).
//!
//! A [`HttpServer`] stands on a [`ConsoleBackend`]: the gate, the record and the desk of a workspace. Every request passes the door
//! first, which knows hosts, origins and tokens; every call then walks the gate like any other. The owner's token may
//! everything that the person at the terminal may. A session, made with `POST /v1/sessions`, has a token, a run, grants
//! and a set of tools of its own, and sees nothing of the others.

mod authenticator;
mod backend;
mod http_session;
mod live_events;
mod metrics;
mod openapi;
mod problem;
mod refusal_log;
mod routes;
mod server;
mod server_state;
mod tls;
mod token;
mod write_timeout;

pub use authenticator::AllowedOrigins;
pub use backend::{ConsoleBackend, SessionRun};
pub use live_events::LiveEvents;
pub use server::{HttpLimits, HttpOptions, HttpServer};
pub use tls::{Tls, TlsError};
pub use token::Token;
