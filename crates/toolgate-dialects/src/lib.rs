//! The dialects of models and clients: the same abilities in the words that each of them knows, tool definitions and tool calls in
//! each API's own format, and the strict JSON that all of them are read as. Conversion only; nothing here depends on the gate.

mod argument_names;
mod autonous;
mod best_known;
mod changed_lines;
mod claude;
mod clude;
mod coder;
mod codex;
mod concise_schema;
mod declarations;
mod definitions;
mod dialect;
mod dialect_set;
mod dialect_state;
mod expression;
mod fence;
mod gemini;
mod hints;
mod json_result;
mod languages;
mod matches;
mod memory;
mod nearest;
mod neutral;
mod new_file;
mod numbered;
mod opencode;
mod pages;
mod parameter;
mod questions;
mod recorded_calls;
mod redaction;
mod remarks;
mod schema_subset;
mod server_resources;
mod shell;
mod skills;
pub mod strict_json;
mod tasks;
mod todos;
mod tool_call;
mod tool_search;

pub use autonous::AUTONOUS;
pub use best_known::best_known;
pub use claude::{CLAUDE, CLAUDE_2_0};
pub use clude::{CLUDE, decision as clude_decision};
pub use coder::CODER;
pub use codex::{CODEX, CODEX_2026_01};
pub use definitions::{DefinitionFormat, definition};
pub use dialect::{
    Answered, AskedCall, Dialect, DialectTool, EnterFault, EnterTool, EnteredCall, FailedCall, LeaveTool, NativeCall,
    NextCall, ResultFormat, Returned, ServerNames, ShownResult, WriteRecord,
};
pub use dialect_set::{DialectSet, DialectSetError, IsTool, NATIVE};
pub use dialect_state::{DialectState, SpokenCall, asked_id, step_id};
pub use gemini::GEMINI;
pub use memory::DialectMemory;
pub use neutral::{NeutralAnswer, neutral_instructions, parse_neutral};
pub use opencode::OPENCODE;
pub use parameter::{ANY_INTEGER, ArgumentError, Arguments, Parameter, ParameterKind, schema};
pub use shell::changed_directory;
pub use skills::SKILLS;
pub use tool_call::{MOST_ARGUMENT_BYTES, ToolCall, ToolCallKind, too_long};

/// Every dialect but the native one, which needs no mapping.
pub static DIALECTS: &[&Dialect] =
    &[&CLAUDE, &CLAUDE_2_0, &CODEX, &CODEX_2026_01, &GEMINI, &OPENCODE, &CLUDE, &SKILLS, &CODER, &AUTONOUS];

/// The dialect of this name.
pub fn dialect(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().copied().find(|dialect| dialect.name == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_of_clients_that_wait_are_waited_for_until_their_time_limit() {
        for (dialect, tool, args) in [
            (&CLAUDE, "Bash", json!({ "command": "make" })),
            (&CLAUDE_2_0, "Bash", json!({ "command": "make" })),
            (&CODEX_2026_01, "shell", json!({ "command": ["make"] })),
            (&CODEX_2026_01, "shell_command", json!({ "command": "make" })),
            (&GEMINI, "run_shell_command", json!({ "command": "make" })),
            (&OPENCODE, "bash", json!({ "command": "make" })),
            (&CLUDE, "run_terminal_cmd", json!({ "command": "make", "is_background": false })),
            (&CODER, "bash", json!({ "command": "make" })),
            (&AUTONOUS, "bash", json!({ "cmd": "make" })),
        ] {
            let entered = dialect.enter(tool, &args, &DialectMemory::default()).unwrap();
            assert_eq!(entered.native.args["yield_ms"], shell::MOST_WAIT_MS, "{} {tool}", dialect.name);
        }
    }

    #[test]
    fn what_cannot_be_had_is_not_offered_and_says_why() {
        for dialect in DIALECTS {
            for (index, (name, reason)) in dialect.unavailable.iter().enumerate() {
                assert!(dialect.tool(name).is_none(), "{}: {name} is offered", dialect.name);
                assert!(reason.ends_with('.') && reason.len() > 10, "{}: {name}: {reason}", dialect.name);
                let twice = dialect.unavailable[..index].iter().any(|(other, _)| other == name);
                assert!(!twice, "{}: {name} is listed twice", dialect.name);
            }
        }
    }
}
