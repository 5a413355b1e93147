//! A hermetic environment for tests only: a temporary workspace, a frozen clock, fixed ids, scripted answers, and tools
//! that misbehave on purpose. Everything else is real: files, journal, gate. With it come patient waits and an MCP client.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

mod approver;
mod clock;
pub mod mcp;
mod measure;
mod processes;
mod recorder;
mod skip;
mod test_workspace;
mod tools;
mod waits;

pub use approver::{FirstChoiceAnswerer, ScriptedApprover, SilentApprover};
pub use clock::FrozenClock;
pub use measure::{median, resident};
pub use processes::{processes_with, unique_sleep};
pub use recorder::FailingRecorder;
pub use skip::{SKIPS_FILE, skip};
pub use test_workspace::{CollectingSink, TestWorkspace};
pub use toolgate_sandbox::process::Tier;
pub use tools::{
    CommandTool, FailingTool, HangingTool, LongOutputTool, PanickingTool, SecretLeakingTool, SleepingTool,
    UndeclaredEffectTool, UndeclaredPermissionTool, WritingTool,
};
pub use waits::{LONGEST_WAIT, wait_for, wait_for_async, wait_until, wait_until_async};
