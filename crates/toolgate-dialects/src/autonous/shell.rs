//! Running commands.

use serde_json::json;

use super::envelope::{Output, envelope};
use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::shell::MOST_WAIT_MS;

pub(super) fn enter_bash(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "command": args.word("cmd"),
        "workdir": memory.native_or_here(args.text("workdir")),
        "timeout_seconds": args.integer("timeout_seconds"),
        "yield_ms": MOST_WAIT_MS,
    });
    Ok(NativeCall::new("shell", call))
}

pub(super) fn leave_bash(returned: &mut Returned<'_>) -> ShownResult {
    let mut output = Output {
        exit_code: returned.number("exit_code"),
        stderr: returned.text("stderr").to_owned(),
        ..Output::printed(returned.text("stdout"))
    };
    if returned.is("timed_out") {
        output.meta.insert("error_class".into(), "timeout".into());
    }
    envelope(returned, output)
}
