//! HTTP: calls, events, approvals, and the page that shows them.
//!
//! A [`HttpServer`] serves a [`Workspace`](toolgate_workspace::Workspace). Every request is authenticated first, by host, origin and token; every call then goes through the gate like any other. The owner's
//! token can do whatever the person at the terminal can. A session, made with `POST /v1/sessions`, has a token, a run,
//! grants and a set of tools of its own, and sees nothing of the others.

mod artifact_verdicts;
mod authenticator;
mod console_options;
mod diff_view;
mod event_summary;
mod http_session;
mod live_feed;
mod metrics;
mod openapi;
mod other_processes;
mod page;
mod problem;
mod refusal_log;
mod routes;
mod run_outline;
mod server;
mod server_state;
mod shown_results;
mod stream_admission;
mod tls;
mod token;
mod write_timeout;

pub use authenticator::AllowedOrigins;
pub use console_options::{ConsoleOptions, DoctorReport};
pub use other_processes::{OtherProcesses, ProcessControl};
pub use server::{HttpLimits, HttpOptions, HttpServer};
pub use tls::{Tls, TlsError};
pub use token::Token;
