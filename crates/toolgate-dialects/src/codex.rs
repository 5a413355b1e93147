//! `codex` and `codex-2026-01`: the tools of Codex 0.166, and those of January 2026. Unknown arguments are ignored, an exit code is
//! never an error, and patches are free text.

mod agents;
mod commands;
mod exec_output;
mod failure;
mod files;
mod indented_block;
mod notes;
mod unavailable;

pub(crate) use files::{apply_patch, patched_files};

use crate::dialect::{Dialect, DialectTool, ServerNames};
use crate::parameter::ParameterKind::{Boolean, Choice, Integer, Object, Objects, Text, Texts};
use crate::parameter::{ANY_INTEGER, Parameter};
use crate::questions::enter_questions;
use crate::server_resources::{CODEX_LIST, CODEX_READ};
use crate::tool_search;

/// Codex 0.166 in function mode.
pub static CODEX: Dialect = Dialect {
    is_closed: false,
    unavailable: unavailable::UNAVAILABLE,
    instead: INSTEAD,
    server_names: ServerNames::MCP,
    ..Dialect::new("codex", "Codex 0.166", TOOLS, failure::failure)
};

/// Codex of January 2026.
pub static CODEX_2026_01: Dialect = Dialect {
    is_closed: false,
    unavailable: unavailable::UNAVAILABLE_2026_01,
    instead: INSTEAD,
    ..Dialect::new("codex-2026-01", "Codex of January 2026", TOOLS_2026_01, failure::failure)
};

const WORKDIR: Parameter = Parameter::optional("workdir", Text, "The directory to run in");
const PERMISSIONS: Parameter = Parameter::optional(
    "sandbox_permissions",
    Choice(&["use_default", "require_escalated"]),
    "Ask to run without the sandbox",
);
const JUSTIFICATION: Parameter =
    Parameter::optional("justification", Text, "Why more rights are needed, for the person");
const PREFIX_RULE: Parameter = Parameter::optional("prefix_rule", Texts, "A rule to suggest to the person");
const TIMEOUT: Parameter = Parameter::optional("timeout_ms", Integer(1, i64::MAX), "Time limit in milliseconds");
const LOGIN: Parameter = Parameter::optional("login", Boolean, "Whether it is a login shell; makes no difference here");
const YIELD: Parameter =
    Parameter::optional("yield_time_ms", ANY_INTEGER, "How long to wait for output, in milliseconds");
const MOST_TOKENS: Parameter = Parameter::optional("max_output_tokens", ANY_INTEGER, "How much output to show");

const EXEC: &[Parameter] = &[
    Parameter::required("cmd", Text, "The command line"),
    WORKDIR,
    Parameter::optional("shell", Text, "The shell; only bash is here"),
    LOGIN,
    Parameter::optional("tty", Boolean, "Give it a terminal"),
    YIELD,
    MOST_TOKENS,
    PERMISSIONS,
    JUSTIFICATION,
    PREFIX_RULE,
];
const STDIN: &[Parameter] = &[
    Parameter::required("session_id", ANY_INTEGER, "The session"),
    Parameter::optional("chars", Text, "What to write; nothing to wait for output"),
    YIELD,
    MOST_TOKENS,
];
const SHELL: &[Parameter] = &[
    Parameter::required("command", Texts, "The program and its arguments"),
    WORKDIR,
    TIMEOUT,
    PERMISSIONS,
    JUSTIFICATION,
    PREFIX_RULE,
];
const SHELL_COMMAND: &[Parameter] = &[
    Parameter::required("command", Text, "The command line"),
    WORKDIR,
    LOGIN,
    TIMEOUT,
    PERMISSIONS,
    JUSTIFICATION,
    PREFIX_RULE,
];
const PATCH: &[Parameter] = &[Parameter::required("input", Text, "The whole patch")];
const IMAGE: &[Parameter] = &[
    Parameter::required("path", Text, "The image's path"),
    Parameter::optional("detail", Choice(&["high", "original"]), ""),
];
const STEP: &[Parameter] = &[
    Parameter::required("step", Text, "What is to be done"),
    Parameter::required("status", Choice(&["pending", "in_progress", "completed"]), ""),
];
const PLAN: &[Parameter] = &[
    Parameter::required("plan", Objects(STEP), "All steps"),
    Parameter::optional("explanation", Text, "Why it changed"),
];
const OPTION: &[Parameter] = &[
    Parameter::required("label", Text, "What the person chooses"),
    Parameter::required("description", Text, "What that means"),
];
const QUESTION: &[Parameter] = &[
    Parameter::required("id", Text, "A name for the answer"),
    Parameter::required("header", Text, "A short title"),
    Parameter::required("question", Text, "The question"),
    Parameter::required("options", Objects(OPTION), "Two or three answers to choose from"),
];
const ASK: &[Parameter] = &[Parameter::required("questions", Objects(QUESTION), "One to three questions")];
const INDENTATION: &[Parameter] = &[
    Parameter::optional("anchor_line", ANY_INTEGER, "The line that the block is around; offset if left out"),
    Parameter::optional("max_levels", ANY_INTEGER, "How many levels to go up; 0 for all"),
    Parameter::optional("include_siblings", Boolean, "Take blocks beside it too"),
    Parameter::optional("include_header", Boolean, "Take comments above it; on unless switched off"),
    Parameter::optional("max_lines", ANY_INTEGER, "How many lines at most"),
];
const READ: &[Parameter] = &[
    Parameter::required("file_path", Text, "The absolute path of the file"),
    Parameter::optional("offset", ANY_INTEGER, "The line to start at, from 1"),
    Parameter::optional("limit", ANY_INTEGER, "How many lines to read"),
    Parameter::optional("mode", Choice(&["slice", "indentation"]), "Lines, or the block around one"),
    Parameter::optional("indentation", Object(INDENTATION), ""),
];
const LIST: &[Parameter] = &[
    Parameter::required("dir_path", Text, "The absolute path of the directory"),
    Parameter::optional("offset", ANY_INTEGER, "The entry to start at, from 1"),
    Parameter::optional("limit", ANY_INTEGER, "How many entries to show"),
    Parameter::optional("depth", ANY_INTEGER, "How deep to go"),
];
const GREP: &[Parameter] = &[
    Parameter::required("pattern", Text, "A regular expression"),
    Parameter::optional("include", Text, "Which files, as a glob"),
    Parameter::optional("path", Text, "Where to search"),
    Parameter::optional("limit", ANY_INTEGER, "How many files to show"),
];

const EXEC_TOOL: DialectTool =
    DialectTool::new("exec_command", "shell", EXEC_ABOUT, EXEC, commands::enter_exec, commands::leave_exec);
const STDIN_TOOL: DialectTool =
    DialectTool::new("write_stdin", "process", STDIN_ABOUT, STDIN, commands::enter_stdin, commands::leave_stdin);
const PATCH_TOOL: DialectTool = DialectTool {
    free_text: Some(("input", include_str!("codex/patch.lark"))),
    ..DialectTool::new("apply_patch", "patch", PATCH_ABOUT, PATCH, files::enter_patch, files::leave_patch)
};
const IMAGE_TOOL: DialectTool =
    DialectTool::new("view_image", "image", "Shows an image.", IMAGE, files::enter_image, files::leave_image);
const PLAN_TOOL: DialectTool =
    DialectTool::new("update_plan", "plan", "Replaces the plan.", PLAN, notes::enter_plan, notes::leave_plan);
const ASK_TOOL: DialectTool =
    DialectTool::new("request_user_input", "ask", "Asks the person questions.", ASK, enter_questions, notes::leave_ask);

static TOOLS: &[DialectTool] = &[
    EXEC_TOOL,
    STDIN_TOOL,
    PATCH_TOOL,
    IMAGE_TOOL,
    PLAN_TOOL,
    ASK_TOOL,
    agents::SPAWN_TOOL,
    agents::SEND_TOOL,
    agents::WAIT_TOOL,
    agents::STOP_TOOL,
    agents::LIST_TOOL,
    CODEX_LIST,
    CODEX_READ,
    tool_search::CODEX,
];

static TOOLS_2026_01: &[DialectTool] = &[
    DialectTool {
        aliases: &["container.exec", "local_shell"],
        ..DialectTool::new("shell", "shell", SHELL_ABOUT, SHELL, commands::enter_shell, commands::leave_shell)
    },
    DialectTool::new(
        "shell_command",
        "shell",
        EXEC_ABOUT,
        SHELL_COMMAND,
        commands::enter_shell_command,
        commands::leave_shell_command,
    ),
    EXEC_TOOL,
    STDIN_TOOL,
    PATCH_TOOL,
    DialectTool::new(
        "read_file",
        "read",
        "Reads a file, with line numbers.",
        READ,
        files::enter_read,
        files::leave_read,
    ),
    DialectTool::new("list_dir", "list", "Lists a directory.", LIST, files::enter_list, files::leave_list),
    DialectTool::new(
        "grep_files",
        "grep",
        "Finds files whose content matches.",
        GREP,
        files::enter_grep,
        files::leave_grep,
    ),
    IMAGE_TOOL,
    PLAN_TOOL,
    ASK_TOOL,
    agents::SPAWN_TOOL,
    agents::SEND_TOOL,
    agents::WAIT_TOOL_2026_01,
    agents::STOP_TOOL,
    CODEX_LIST,
    CODEX_READ,
];

/// Files are read and searched by commands, and changed by patches.
const INSTEAD: &[(&str, &str)] = &[
    ("read", "exec_command"),
    ("list", "exec_command"),
    ("find", "exec_command"),
    ("grep", "exec_command"),
    ("search", "exec_command"),
    ("move", "exec_command"),
    ("delete", "apply_patch"),
    ("edit", "apply_patch"),
    ("write", "apply_patch"),
];

const EXEC_ABOUT: &str =
    "Runs a command in bash, confined to the workspace. What still runs when the wait is over goes on as a session.";
const STDIN_ABOUT: &str = "Writes to a session and shows what it printed since.";
const SHELL_ABOUT: &str = "Runs a program, confined to the workspace.";
const PATCH_ABOUT: &str = "Changes files by a patch: the text between `*** Begin Patch` and `*** End Patch`.";
