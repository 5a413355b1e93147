//! HTTP: calls, events, approvals (C-63).
//!
//! A [`Server`] stands on a [`House`]: the gate, the record and the desk of a workspace. Every request passes the door
//! first, which knows hosts, origins and tokens; every call then walks the gate like any other. The owner's token may
//! everything that the person at the terminal may. A session, made with `POST /v1/sessions`, has a token, a run, grants
//! and a set of tools of its own, and sees nothing of the others.

mod client;
mod door;
mod house;
mod metrics;
mod openapi;
mod passing;
mod patience;
mod problem;
mod refusals;
mod routes;
mod server;
mod shared;
mod tls;
mod token;

pub use door::Doors;
pub use house::{House, Stay};
pub use passing::Passing;
pub use server::{Limits, Options, Server};
pub use tls::{Tls, TlsError};
pub use token::Token;
