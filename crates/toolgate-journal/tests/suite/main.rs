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
mod session_notes;
mod signing_key;
mod snapshots;
mod sqlite;
mod state;
mod store_suite;
mod tree;
mod verify;
// The testkit itself depends on this crate.
#[allow(unreachable_pub, dead_code, reason = "it is public in the testkit, and not all of it is used here")]
#[path = "../../../toolgate-testkit/src/waits.rs"]
mod waits;
mod world;
