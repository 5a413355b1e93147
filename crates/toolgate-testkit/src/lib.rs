//! The test world (for tests only): a temporary workspace, a frozen clock, fixed ids, scripted answers, and tools that
//! misbehave on purpose. What it wires together is the real thing: real files, a real journal, the real gate.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

mod approver;
mod clock;
mod measure;
mod recorder;
mod tools;
mod world;

pub use approver::{FirstChoice, Never, ScriptedApprover};
pub use clock::FrozenClock;
pub use measure::{median, resident};
pub use recorder::FailingRecorder;
pub use toolgate_sandbox::process::Tier;
pub use tools::{Big, Fails, Liar, Panics, Runs, Secrets, Sleeps, Undeclared, Writes};
pub use world::{Watched, World};
