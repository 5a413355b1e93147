//! Running commands.

use serde_json::json;

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::fence::without_tags;
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::shell::{MOST_WAIT_MS, both_streams, command_notes, seconds};

/// Milliseconds that a command may take where the model says nothing.
const DEFAULT_TIMEOUT: i64 = 120_000;
/// The tag around what this client says of a command beside its output.
pub(super) const METADATA: &str = "shell_metadata";

pub(super) fn enter_bash(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "command": args.word("command"),
        "workdir": memory.native_or_here(args.text("workdir")),
        "timeout_seconds": seconds(args.integer("timeout").unwrap_or(DEFAULT_TIMEOUT)),
        "yield_ms": MOST_WAIT_MS,
    });
    Ok(NativeCall { justification: args.text("description").map(str::to_owned), ..NativeCall::new("shell", call) })
}

/// The client itself doesn't tell the exit code. A model has to know it, so one that isn't 0 is part of the metadata.
pub(super) fn leave_bash(returned: &mut Returned<'_>) -> ShownResult {
    let output = without_tags(&both_streams(returned), &[METADATA]);
    let output = match (returned.artifact(), output.trim().is_empty()) {
        (Some(artifact), _) => {
            format!("...output truncated...\n\nFull output saved to: {artifact}\n\n{output}")
        }
        (None, true) => "(no output)".to_owned(),
        (None, false) => output,
    };
    let mut metadata = Vec::new();
    if returned.is("timed_out") {
        let limit = returned.args.integer("timeout").unwrap_or(DEFAULT_TIMEOUT);
        metadata.push(format!("shell tool terminated command after exceeding timeout {limit} ms."));
    }
    let code = returned.field("exit_code").as_i64().filter(|code| *code != 0);
    metadata.extend(code.map(|code| format!("exit code: {code}")));
    metadata.extend(command_notes(returned));
    if metadata.is_empty() {
        return ShownResult::ok(output);
    }
    ShownResult::ok(format!("{}\n\n<{METADATA}>\n{}\n</{METADATA}>", output.trim_end(), metadata.join("\n")))
}
