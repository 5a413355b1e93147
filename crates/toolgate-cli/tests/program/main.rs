//! The program as people and programs meet it, end to end.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

mod calls;
mod commands;
mod killed;
mod overlay;
mod policy;
mod quarantine;
mod record;
mod rehearsal;
mod world;
