//! `clude`: the tool protocol of the clude design. Every result is one `ToolCallResult`: `tool_call_id`, `ok`, `payload`, `error`,
//! `artifacts`, `duration_ms`. The payload is the native tool's own.

mod audit;
mod result;
mod tools;

use crate::dialect::{Dialect, DialectTool, ResultFormat};
use crate::parameter::ParameterKind::{Boolean, Choice, Integer, Text, Texts};
use crate::parameter::{ANY_INTEGER, Parameter};

pub use result::decision;

/// The clude design.
pub static CLUDE: Dialect = Dialect {
    format: ResultFormat::Json { notes: &["notes"] },
    record: Some(audit::record),
    ..Dialect::new("clude", "the design of clude's tool protocol", TOOLS, result::failure)
};

const PATH: Parameter = Parameter::required("path", Text, "The path, relative to the workspace");
const LIST: &[Parameter] = &[PATH, Parameter::optional("ignore_globs", Texts, "Globs to leave out")];
const GLOB: &[Parameter] = &[
    Parameter::required("glob_pattern", Text, "A glob, such as **/*.py"),
    Parameter::optional("target_directory", Text, "Where to look; the workspace if left out"),
];
const READ: &[Parameter] = &[
    PATH,
    Parameter::optional("offset", ANY_INTEGER, "The line to start at, from 1"),
    Parameter::optional("limit", Integer(1, i64::MAX), "How many lines to read"),
];
const PATCH: &[Parameter] =
    &[Parameter::required("patch_text", Text, "A unified diff, or `*** Begin Patch` … `*** End Patch`")];
const DELETE: &[Parameter] = &[PATH];
const GREP: &[Parameter] = &[
    Parameter::required("pattern", Text, "A regular expression"),
    Parameter::optional("path", Text, "Where to search; the workspace if left out"),
    Parameter::optional("glob", Text, "Which files"),
    Parameter::optional("multiline", Boolean, "Let a match span lines"),
    Parameter::optional("head_limit", Integer(1, i64::MAX), "How many matches to show"),
    Parameter::optional("-i", Boolean, "Ignore case"),
];
const SEARCH: &[Parameter] = &[
    Parameter::required("query", Text, "What to look for, in words"),
    Parameter::required("target_directories", Texts, "Where to search; the workspace if empty"),
];
const RUN: &[Parameter] = &[
    Parameter::required("command", Text, "The command"),
    Parameter::required("is_background", Boolean, "Start it and go on"),
];
const DISPLAY: &[Parameter] = &[
    Parameter::required("content", Text, "What to show, in Markdown"),
    Parameter::optional("level", Choice(&["info", "success", "warning", "error", "progress"]), "info if left out"),
    Parameter::optional("title", Text, "A heading"),
    Parameter::optional("thought", Text, "The reasoning"),
    Parameter::optional("evidence", Texts, "Files, lines, commands"),
];
const MEMORY: &[Parameter] = &[
    Parameter::required("action", Choice(&["create", "update", "delete"]), "What to do"),
    Parameter::optional("title", Text, "A heading"),
    Parameter::optional("knowledge_to_store", Text, "What to remember"),
    Parameter::optional("existing_knowledge_id", Text, "The entry to update or delete"),
];

const LINTS: &[Parameter] = &[Parameter::required("paths", Texts, "Files or directories")];

static TOOLS: &[DialectTool] = &[
    DialectTool::new("list_dir", "list", "Lists a directory.", LIST, tools::enter_list, result::leave),
    DialectTool::new("glob_file_search", "find", "Finds files by name.", GLOB, tools::enter_glob, result::leave),
    DialectTool::new("read_file", "read", "Reads a file.", READ, tools::enter_read, result::leave),
    DialectTool::new("apply_patch", "patch", "Changes files by a patch.", PATCH, tools::enter_patch, result::leave),
    DialectTool::new("delete_file", "delete", "Deletes a file.", DELETE, tools::enter_delete, result::leave),
    DialectTool::new("grep", "grep", "Searches the content of files.", GREP, tools::enter_grep, result::leave),
    DialectTool::new("codebase_search", "search", SEARCH_ABOUT, SEARCH, tools::enter_search, result::leave),
    DialectTool::new("run_terminal_cmd", "shell", RUN_ABOUT, RUN, tools::enter_run, result::leave),
    DialectTool::new("display", "display", DISPLAY_ABOUT, DISPLAY, tools::enter_display, result::leave),
    DialectTool::new("read_lints", "lints", LINTS_ABOUT, LINTS, tools::enter_lints, result::leave),
    DialectTool::new("update_memory", "memory", MEMORY_ABOUT, MEMORY, tools::enter_memory, result::leave),
];

const SEARCH_ABOUT: &str = "Finds the places in the code that fit a question best. Use grep for exact text.";
const LINTS_ABOUT: &str = "Shows what language servers and linters find wrong.";
const RUN_ABOUT: &str = "Runs a command, confined to the workspace.";
const DISPLAY_ABOUT: &str =
    "Shows the person progress, a finding or an explanation. Call it at the start of each step of longer work.";
const MEMORY_ABOUT: &str = "Remembers facts beyond this run.";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{DialectMemory, NeutralAnswer, parse_neutral};

    /// The calls that the design gives as examples, as a model writes them.
    const EXAMPLES: [&str; 3] = [
        r#"{"tool":"display","args":{"content":"正在分析第 3/10 个文件…","level":"progress"}}"#,
        r#"{"tool":"display","args":{"title":"代码审计","content":"发现 2 处高风险点，准备修复。","level":"warning"}}"#,
        r#"{
          "tool": "display",
          "args": {
            "title": "执行思路",
            "level": "info",
            "content": "准备收敛入口：先统一事件协议，再迁移 UI 到 plugins。",
            "thought": "原因：目前存在多入口导致行为分裂；先把链路收口才能保证 UI/工具/审计一致。",
            "evidence": ["入口: cli/chat_handler.py", "UI: plugins/ui/opencode_tui.py", "协议: docs/02-tool-protocol.md"]
          }
        }"#,
    ];

    #[test]
    fn the_examples_of_the_design_are_calls() {
        for example in EXAMPLES {
            let Ok(NeutralAnswer::Calls(calls)) = parse_neutral(example) else { panic!("{example}") };
            let args = calls[0].args.clone().unwrap();
            let entered = CLUDE.enter(&calls[0].name, &args, &DialectMemory::default()).unwrap();
            assert_eq!((entered.native.tool, &entered.native.args), ("display", &args), "{example}");
        }
    }

    #[test]
    fn the_schema_of_display_is_that_of_the_design() {
        let schema = CLUDE.schema(CLUDE.tool("display").unwrap());
        assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["content"]), &json!(false)));
        let levels = json!(["info", "success", "warning", "error", "progress"]);
        assert_eq!(schema["properties"]["level"]["enum"], levels);
        for name in ["content", "title"] {
            assert_eq!(schema["properties"][name]["type"], Value::from("string"), "{name}");
        }
    }
}
