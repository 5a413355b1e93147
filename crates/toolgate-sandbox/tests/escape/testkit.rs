//! The parts of the testkit that depend on nothing: the testkit itself depends on this crate.
#![allow(unreachable_pub, dead_code, reason = "it is public in the testkit, and not all of it is used here")]

#[path = "../../../toolgate-testkit/src/processes.rs"]
mod processes;
#[path = "../../../toolgate-testkit/src/skip.rs"]
mod skip;
#[path = "../../../toolgate-testkit/src/waits.rs"]
mod waits;

pub(crate) use processes::{processes_with, unique_sleep};
pub(crate) use skip::{SKIPS_FILE, skip};
pub(crate) use waits::wait_until;
