//! Agents at work behind the real gate, with models that speak real HTTP and misbehave on purpose.
#![allow(clippy::disallowed_methods, reason = "tests make files and servers of their own")]

mod failures;
mod improvising;
mod limits;
mod pictures;
mod rooms;
mod server;
mod side_by_side;
mod staff;
mod wire;
mod world;
