//! `opencode`: the tools of opencode 1.18. Arguments are in camelCase, schemas are open, and a file or a directory is read by the
//! same tool.

mod commands;
mod failure;
mod files;
mod languages;
mod notes;
mod search;

use crate::dialect::{Dialect, DialectTool, ServerNames};
use crate::parameter::ParameterKind::{Boolean, Choice, Integer, Objects, Text};
use crate::parameter::{Parameter, ParameterKind};
use crate::questions::enter_questions;
use crate::server_resources::{CODEX_LIST, CODEX_READ};
use crate::tasks::leave_task;

/// opencode.
pub static OPENCODE: Dialect = Dialect {
    is_closed: false,
    unavailable: UNAVAILABLE,
    server_names: ServerNames { prefix: "", separator: "_" },
    instead: INSTEAD,
    ..Dialect::new("opencode", "opencode 1.18", TOOLS, failure::failure)
};

const FROM_1: ParameterKind = Integer(1, i64::MAX);
const FILE_PATH: Parameter = Parameter::required("filePath", Text, "The absolute path of the file");
const PATH: Parameter = Parameter::optional("path", Text, "Where to search; the workspace if left out");

const READ: &[Parameter] = &[
    Parameter::required("filePath", Text, "The absolute path of the file or directory"),
    Parameter::optional("offset", FROM_1, "The line to start at, from 1"),
    Parameter::optional("limit", FROM_1, "How many lines to read; 2000 if left out"),
];
const EDIT: &[Parameter] = &[
    FILE_PATH,
    Parameter::required("oldString", Text, "The text to replace; empty for a new file"),
    Parameter::required("newString", Text, "The text to put in its place"),
    Parameter::optional("replaceAll", Boolean, "Replace every occurrence"),
];
const WRITE: &[Parameter] = &[FILE_PATH, Parameter::required("content", Text, "The whole new content")];
const PATCH: &[Parameter] = &[Parameter::required("patchText", Text, "The whole patch")];
const GLOB: &[Parameter] = &[Parameter::required("pattern", Text, "A glob, such as **/*.rs"), PATH];
const GREP: &[Parameter] = &[
    Parameter::required("pattern", Text, "A regular expression"),
    PATH,
    Parameter::optional("include", Text, "Which files, as a glob"),
];
const BASH: &[Parameter] = &[
    Parameter::required("command", Text, "The command"),
    Parameter::optional("timeout", FROM_1, "Time limit in milliseconds"),
    Parameter::optional("workdir", Text, "The directory to run in"),
    Parameter::optional("description", Text, "What the command does, in a few words"),
];
const TODO: &[Parameter] = &[
    Parameter::required("content", Text, "What is to be done"),
    Parameter::required("status", Choice(&["pending", "in_progress", "completed", "cancelled"]), ""),
    Parameter::required("priority", Choice(&["high", "medium", "low"]), ""),
    Parameter::optional("id", Text, ""),
];
const TODOS: &[Parameter] = &[Parameter::required("todos", Objects(TODO), "The whole list")];
const TASK: &[Parameter] = &[
    Parameter::required("description", Text, "What it is about, in a few words"),
    Parameter::required("prompt", Text, "The task, with everything that it needs to know"),
    Parameter::required("subagent_type", Text, "Which agent"),
    Parameter::optional("task_id", Text, "An earlier task to continue; not supported here"),
    Parameter::optional("command", Text, "Makes no difference here"),
];
const FETCH: &[Parameter] = &[
    Parameter::required("url", Text, "The address"),
    Parameter::optional("format", Choice(&["text", "markdown", "html"]), "markdown if left out"),
    Parameter::optional("timeout", Integer(1, 120), "Time limit in seconds"),
];
const SKILL: &[Parameter] = &[Parameter::required("name", Text, "The skill's name")];
const OPTION: &[Parameter] = &[
    Parameter::required("label", Text, "What the person chooses"),
    Parameter::optional("description", Text, "What that means"),
];
const QUESTION: &[Parameter] = &[
    Parameter::required("question", Text, "The question"),
    Parameter::required("header", Text, "A short title"),
    Parameter::required("options", Objects(OPTION), "Answers to choose from"),
    Parameter::optional("multiple", Boolean, "Whether several can be chosen"),
];
const ASK: &[Parameter] = &[Parameter::required("questions", Objects(QUESTION), "The questions")];

static TOOLS: &[DialectTool] = &[
    DialectTool::new("read", "read", READ_ABOUT, READ, files::enter_read, files::leave_read),
    DialectTool::new("edit", "edit", EDIT_ABOUT, EDIT, files::enter_edit, files::leave_edit),
    DialectTool::new("write", "write", WRITE_ABOUT, WRITE, files::enter_write, files::leave_write),
    DialectTool::new("apply_patch", "patch", PATCH_ABOUT, PATCH, files::enter_patch, files::leave_patch),
    DialectTool::new("glob", "find", GLOB_ABOUT, GLOB, search::enter_glob, search::leave_glob),
    DialectTool::new("grep", "grep", GREP_ABOUT, GREP, search::enter_grep, search::leave_grep),
    DialectTool::new("bash", "shell", BASH_ABOUT, BASH, commands::enter_bash, commands::leave_bash),
    DialectTool::new("todowrite", "todo_write", TODO_ABOUT, TODOS, notes::enter_todos, notes::leave_todos),
    DialectTool::new("task", "task", TASK_ABOUT, TASK, notes::enter_task, leave_task),
    DialectTool::new("webfetch", "fetch", FETCH_ABOUT, FETCH, notes::enter_fetch, notes::leave_fetch),
    DialectTool::new("skill", "skill", SKILL_ABOUT, SKILL, notes::enter_skill, notes::leave_skill),
    DialectTool::new("question", "ask", ASK_ABOUT, ASK, enter_questions, notes::leave_ask),
    languages::TOOL,
    CODEX_LIST,
    CODEX_READ,
];

const INSTEAD: &[(&str, &str)] = &[
    ("list", "read"),
    ("image", "read"),
    ("todo_read", "todowrite"),
    ("move", "bash"),
    ("delete", "bash"),
    ("process", "bash"),
    ("search", "grep"),
    ("lsp_references", "lsp"),
    ("lsp_hover", "lsp"),
    ("lsp_symbols", "lsp"),
    ("lsp_calls", "lsp"),
];

const UNAVAILABLE: &[(&str, &str)] = &[
    ("list", "`read` shows directories."),
    (
        "list_mcp_resource_templates",
        "templates of addresses aren't offered; list_mcp_resources shows what can be read.",
    ),
    ("plan_exit", "plan mode belongs to the client itself."),
];

const READ_ABOUT: &str = "Reads a file, with line numbers, or lists a directory. Shows images.";
const EDIT_ABOUT: &str = "Replaces a text in a file. The text has to occur exactly once, unless `replaceAll` is set.";
const WRITE_ABOUT: &str = "Writes a file, replacing what is there.";
const PATCH_ABOUT: &str = "Changes files by a patch: the text between `*** Begin Patch` and `*** End Patch`.";
const GLOB_ABOUT: &str = "Finds files by name, the newest first.";
const GREP_ABOUT: &str = "Searches the content of files with a regular expression.";
const BASH_ABOUT: &str = "Runs a command in bash, confined to the workspace.";
const TODO_ABOUT: &str = "Replaces the list of things to do.";
const TASK_ABOUT: &str = "Gives a piece of work to another agent and gets its answer.";
const FETCH_ABOUT: &str = "Fetches an address and shows its text.";
const SKILL_ABOUT: &str = "Loads the instructions of a skill.";
const ASK_ABOUT: &str = "Asks the person questions.";
