//! The journal's tests, in one program: some of them start that program again as another process.

// Tests prepare, damage and inspect the files that the crate keeps.
#![allow(clippy::disallowed_methods, missing_docs)]

mod artifacts;
mod export;
mod follow;
mod grants;
mod inbox;
mod inbox_suite;
mod indexer;
mod journal;
mod processes;
mod queue;
mod run_list;
mod session_notes;
mod signing_key;
mod sqlite;
mod state;
mod store_suite;
mod tree;
mod verify;
mod world;
