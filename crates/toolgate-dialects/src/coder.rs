//! `coder`: the built-in tools of the coder design. Every result is a JSON object with `ok`; a file is read in pages of 50 lines.

mod commands;
mod failure;
mod files;
mod languages;
mod notes;

use crate::dialect::{Dialect, DialectTool, ResultFormat};
use crate::parameter::ParameterKind::{Boolean, Choice, Objects, Text};
use crate::parameter::{ANY_INTEGER, Parameter};

/// The coder design.
pub static CODER: Dialect = Dialect {
    format: ResultFormat::Json { notes: &["notes"] },
    ..Dialect::new("coder", "the design of coder's built-in tools", TOOLS, failure::failure)
};

const PATH: Parameter = Parameter::required("path", Text, "The path, relative to the workspace");
const READ: &[Parameter] = &[
    PATH,
    Parameter::optional("offset", ANY_INTEGER, "The line to start at, from 1"),
    Parameter::optional("limit", ANY_INTEGER, "How many lines to read: 50 if left out, 200 at most"),
];
const WRITE: &[Parameter] = &[PATH, Parameter::required("content", Text, "The whole new content")];
const LIST: &[Parameter] = &[Parameter::optional("path", Text, "The directory; the workspace if left out")];
const GLOB: &[Parameter] = &[Parameter::required("pattern", Text, "A relative glob, such as **/*.go")];
const GREP: &[Parameter] = &[
    Parameter::required("pattern", Text, "A regular expression"),
    Parameter::optional("path", Text, "Where to search; the workspace if left out"),
    Parameter::optional("max_matches", ANY_INTEGER, "How many matches to show; 200 if left out"),
];
const PATCH: &[Parameter] = &[
    Parameter::required("patch", Text, "A unified diff"),
    Parameter::optional("dry_run", Boolean, "Only show what would happen"),
];
const BASH: &[Parameter] = &[Parameter::required("command", Text, "The command")];
const TODO: &[Parameter] = &[
    Parameter::required("id", Text, "Its name"),
    Parameter::required("content", Text, "What is to be done"),
    Parameter::required("status", Choice(&["pending", "in_progress", "completed"]), "At most one is in progress"),
    Parameter::required("priority", Choice(&["high", "medium", "low"]), ""),
];
const TODOS: &[Parameter] = &[Parameter::required("todos", Objects(TODO), "The whole list")];
const SKILL: &[Parameter] = &[
    Parameter::required("action", Choice(&["list", "load"]), "What to do"),
    Parameter::optional("name", Text, "The skill to load"),
];
const TASK: &[Parameter] = &[
    Parameter::required("agent", Text, "Which agent"),
    Parameter::required("objective", Text, "Its task, with everything that it needs to know"),
];

const FILE: &[Parameter] = &[PATH];
const POSITION: &[Parameter] = &[
    PATH,
    Parameter::required("line", ANY_INTEGER, "The line, from 0"),
    Parameter::required("character", ANY_INTEGER, "The character in the line, from 0"),
];

static TOOLS: &[DialectTool] = &[
    DialectTool::new("read", "read", "Reads a page of a file.", READ, files::enter_read, files::leave_read),
    DialectTool::new("write", "write", "Writes a whole file.", WRITE, files::enter_write, files::leave_write),
    DialectTool::new("list", "list", "Lists a directory.", LIST, files::enter_list, files::leave_list),
    DialectTool::new("glob", "find", "Finds files by name.", GLOB, files::enter_glob, files::leave_glob),
    DialectTool::new("grep", "grep", "Searches the content of files.", GREP, files::enter_grep, files::leave_grep),
    DialectTool::new("patch", "patch", "Applies a unified diff.", PATCH, files::enter_patch, files::leave_patch),
    DialectTool::new("bash", "shell", BASH_ABOUT, BASH, commands::enter_bash, commands::leave_bash),
    DialectTool::new("todoread", "todo_read", "Shows the todo list.", &[], notes::enter_todoread, notes::leave_todos),
    DialectTool::new("todowrite", "todo_write", TODO_ABOUT, TODOS, notes::enter_todowrite, notes::leave_todos),
    DialectTool::new("skill", "skill", "Lists skills, or loads one.", SKILL, notes::enter_skill, notes::leave_skill),
    DialectTool::new("task", "task", TASK_ABOUT, TASK, notes::enter_task, notes::leave_task),
    DialectTool::new(
        "lsp_diagnostics",
        "lsp_diagnostics",
        "Shows what is wrong in a file.",
        FILE,
        languages::enter_diagnostics,
        languages::leave_diagnostics,
    ),
    DialectTool::new(
        "lsp_definition",
        "lsp_definition",
        "Finds where a symbol is defined.",
        POSITION,
        languages::enter_definition,
        languages::leave_definition,
    ),
    DialectTool::new(
        "lsp_hover",
        "lsp_hover",
        "Shows what a symbol is.",
        POSITION,
        languages::enter_hover,
        languages::leave_hover,
    ),
];

const BASH_ABOUT: &str = "Runs a command in the workspace, confined to it.";
const TODO_ABOUT: &str = "Replaces the todo list.";
const TASK_ABOUT: &str = "Gives a piece of work to another agent and gets its answer.";
