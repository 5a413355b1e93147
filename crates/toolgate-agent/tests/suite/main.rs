//! Agents behind the real gate, with models that use real HTTP and misbehave on purpose.
#![allow(clippy::disallowed_methods, reason = "tests make files and servers of their own")]

mod aborted_run;
mod context_window;
mod dialects;
mod failures;
mod images;
mod improvising;
mod limits;
mod parallel_calls;
mod resume;
mod server;
mod subagents;
mod wire;
mod world;
