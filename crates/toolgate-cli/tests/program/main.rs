//! The program as people and programs meet it, end to end.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

mod agent;
mod agents_own;
mod attach;
mod bot;
mod calls;
mod commands;
mod http;
mod inbox;
mod inbox_killed;
mod init;
mod killed;
mod mcp;
mod network;
mod no_namespaces;
mod ordinary_work;
mod overlay;
mod planted;
mod policy;
mod quarantine;
mod record;
mod rehearsal;
mod replay;
mod sandbox;
mod shared_store;
mod terminal;
mod world;
