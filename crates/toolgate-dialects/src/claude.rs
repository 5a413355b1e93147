//! `claude` and `claude-2.0`: the tools of Claude Code, version 2.1 and those before. Schemas are closed, paths are absolute, and
//! an exit code other than 0 is an error.

mod agents;
mod commands;
mod failure;
mod files;
mod languages;
mod notebooks;
mod notes;
mod search;
mod tasks;
mod unavailable;

use crate::dialect::{Dialect, DialectTool, ServerNames};
use crate::parameter::Parameter;
use crate::parameter::ParameterKind::{Boolean, Choice, Integer, Objects, Text};
use crate::questions::enter_questions;
use crate::server_resources::{CLAUDE_LIST, CLAUDE_READ};
use crate::tool_search;

/// Claude Code since 2.1.
pub static CLAUDE: Dialect = Dialect {
    unavailable: unavailable::UNAVAILABLE,
    instead: INSTEAD,
    server_names: ServerNames::MCP,
    ..Dialect::new("claude", "Claude Code 2.1", TOOLS, failure::failure)
};

/// Claude Code 2.0 and 1.x.
pub static CLAUDE_2_0: Dialect = Dialect {
    unavailable: unavailable::UNAVAILABLE_2_0,
    instead: INSTEAD,
    server_names: ServerNames::MCP,
    ..Dialect::new("claude-2.0", "Claude Code 2.0 and 1.x", TOOLS_2_0, failure::failure)
};

const FILE_PATH: Parameter = Parameter::required("file_path", Text, "The absolute path of the file");
const EDIT: &[Parameter] = &[
    Parameter::required("old_string", Text, "The text to replace"),
    Parameter::required("new_string", Text, "The text to put in its place"),
    Parameter::optional("replace_all", Boolean, "Replace every occurrence"),
];
const READ: &[Parameter] = &[
    FILE_PATH,
    Parameter::optional("offset", Integer(0, i64::MAX), "The line to start at, from 1"),
    Parameter::optional("limit", Integer(1, i64::MAX), "How many lines to read"),
    Parameter::optional("pages", Text, "Pages of a PDF; not supported here"),
    Parameter::optional("allow_large", Boolean, "Read a large file in one piece"),
];
const WRITE: &[Parameter] = &[FILE_PATH, Parameter::required("content", Text, "The whole new content")];
const BASH: &[Parameter] = &[
    Parameter::required("command", Text, "The command"),
    Parameter::optional("timeout", Integer(1, 7_200_000), "Time limit in milliseconds"),
    Parameter::optional("description", Text, "What the command does, in a few words"),
    Parameter::optional("run_in_background", Boolean, "Start it and go on"),
    Parameter::optional("dangerouslyDisableSandbox", Boolean, "Ask to run it without the sandbox"),
];
const GLOB: &[Parameter] = &[
    Parameter::required("pattern", Text, "A glob, such as **/*.rs"),
    Parameter::optional("path", Text, "The directory to search in"),
];
const GREP: &[Parameter] = &[
    Parameter::required("pattern", Text, "A regular expression"),
    Parameter::optional("path", Text, "The file or directory to search in"),
    Parameter::optional("glob", Text, "Which files, such as *.rs"),
    Parameter::optional("output_mode", Choice(&["content", "files_with_matches", "count"]), "What to show"),
    Parameter::optional("-A", Integer(0, i64::MAX), "Lines after each match"),
    Parameter::optional("-B", Integer(0, i64::MAX), "Lines before each match"),
    Parameter::optional("-C", Integer(0, i64::MAX), "Lines around each match"),
    Parameter::optional("context", Integer(0, i64::MAX), "Lines around each match"),
    Parameter::optional("-n", Boolean, "Show line numbers; on unless switched off"),
    Parameter::optional("-i", Boolean, "Ignore case"),
    Parameter::optional("-o", Boolean, "Show only what matched"),
    Parameter::optional("type", Text, "Which kind of files, such as rust"),
    Parameter::optional("head_limit", Integer(0, i64::MAX), "How many results to show; 0 for all"),
    Parameter::optional("offset", Integer(0, i64::MAX), "How many results to skip"),
    Parameter::optional("multiline", Boolean, "Let a match span lines"),
];
const TODO: &[Parameter] = &[
    Parameter::required("content", Text, "What is to be done"),
    Parameter::required("status", Choice(&["pending", "in_progress", "completed"]), ""),
    Parameter::optional("activeForm", Text, "The same while it is being done"),
    Parameter::optional("id", Text, ""),
    Parameter::optional("priority", Choice(&["high", "medium", "low"]), ""),
];
const TODOS: &[Parameter] = &[Parameter::required("todos", Objects(TODO), "The whole list")];
const OPTION: &[Parameter] = &[
    Parameter::required("label", Text, "What the person chooses"),
    Parameter::required("description", Text, "What that means"),
    Parameter::optional("preview", Text, ""),
];
const QUESTION: &[Parameter] = &[
    Parameter::required("question", Text, "The question"),
    Parameter::required("header", Text, "A short title"),
    Parameter::required("options", Objects(OPTION), "Two to four answers to choose from"),
    Parameter::required("multiSelect", Boolean, "Whether several can be chosen"),
];
const FETCH: &[Parameter] = &[
    Parameter::required("url", Text, "The address"),
    Parameter::required("prompt", Text, "What to look for in it"),
    Parameter::optional("offset", Integer(0, i64::MAX), "How many characters of the page to skip"),
];
const LS: &[Parameter] = &[
    Parameter::required("path", Text, "The absolute path of the directory"),
    Parameter::optional("ignore", crate::parameter::ParameterKind::Texts, "Globs to leave out"),
];

const NOTEBOOK_EDIT: DialectTool = DialectTool::new(
    "NotebookEdit",
    "notebook",
    "Replaces, inserts or deletes a cell of a notebook that was read before.",
    notebooks::EDIT,
    notebooks::enter_edit,
    notebooks::leave_edit,
);

static TOOLS: &[DialectTool] = &[
    DialectTool::new("Read", "read", READ_ABOUT, READ, files::enter_read, files::leave_read),
    DialectTool::new("Edit", "edit", EDIT_ABOUT, files::EDIT_FILE, files::enter_edit, files::leave_edit),
    DialectTool::new(
        "MultiEdit",
        "edit",
        MULTI_EDIT_ABOUT,
        files::MULTI_EDIT,
        files::enter_multi_edit,
        files::leave_multi_edit,
    ),
    DialectTool::new("Write", "write", WRITE_ABOUT, WRITE, files::enter_write, files::leave_write),
    DialectTool::new("Bash", "shell", BASH_ABOUT, BASH, commands::enter_bash, commands::leave_bash),
    DialectTool::new(
        "TaskStop",
        "process",
        STOP_ABOUT,
        commands::TASK_STOP,
        commands::enter_stop,
        commands::leave_stop,
    ),
    DialectTool::new("Glob", "find", GLOB_ABOUT, GLOB, search::enter_glob, search::leave_glob),
    DialectTool::new("Grep", "grep", GREP_ABOUT, GREP, search::enter_grep, search::leave_grep),
    DialectTool::new("TodoWrite", "todo_write", TODO_ABOUT, TODOS, notes::enter_todos, notes::leave_todos),
    NOTEBOOK_EDIT,
    DialectTool::new("TaskCreate", "todo_write", CREATE_ABOUT, tasks::CREATE, tasks::enter_create, tasks::leave_create),
    DialectTool::new("TaskGet", "todo_read", GET_ABOUT, tasks::GET, tasks::enter_read, tasks::leave_get),
    DialectTool::new("TaskList", "todo_read", LIST_ABOUT, tasks::LIST, tasks::enter_read, tasks::leave_list),
    DialectTool::new("TaskUpdate", "todo_write", UPDATE_ABOUT, tasks::UPDATE, tasks::enter_update, tasks::leave_update),
    DialectTool::new("Agent", "task", AGENT_ABOUT, agents::AGENT, agents::enter_agent, agents::leave_agent),
    DialectTool::new("SendMessage", "agents", SEND_ABOUT, agents::SEND, agents::enter_send, agents::leave_send),
    DialectTool::new("ListAgents", "agents", AGENTS_ABOUT, &[], agents::enter_list, agents::leave_list),
    DialectTool::new("WebFetch", "fetch", FETCH_ABOUT, FETCH, notes::enter_fetch, notes::leave_fetch),
    DialectTool::new("Skill", "skill", SKILL_ABOUT, notes::SKILL, notes::enter_skill, notes::leave_skill),
    DialectTool::new("AskUserQuestion", "ask", ASK_ABOUT, notes::ASK, enter_questions, notes::leave_ask),
    languages::TOOL,
    CLAUDE_LIST,
    CLAUDE_READ,
    tool_search::CLAUDE,
];

static TOOLS_2_0: &[DialectTool] = &[
    DialectTool::new("Read", "read", READ_ABOUT, READ, files::enter_read, files::leave_read_2_0),
    DialectTool::new("Edit", "edit", EDIT_ABOUT, files::EDIT_FILE, files::enter_edit_read, files::leave_edit_2_0),
    DialectTool::new(
        "MultiEdit",
        "edit",
        MULTI_EDIT_ABOUT,
        files::MULTI_EDIT,
        files::enter_multi_edit_read,
        files::leave_multi_edit,
    ),
    DialectTool::new("Write", "write", WRITE_ABOUT, WRITE, files::enter_write_read, files::leave_write_2_0),
    DialectTool::new("LS", "list", "Lists a directory.", LS, files::enter_ls, files::leave_ls),
    DialectTool::new("Bash", "shell", BASH_ABOUT, BASH, commands::enter_bash, commands::leave_bash_2_0),
    DialectTool::new(
        "BashOutput",
        "process",
        OUTPUT_ABOUT,
        commands::BASH_OUTPUT,
        commands::enter_output,
        commands::leave_output,
    ),
    DialectTool {
        aliases: &["KillBash"],
        ..DialectTool::new(
            "KillShell",
            "process",
            STOP_ABOUT,
            commands::KILL_SHELL,
            commands::enter_stop,
            commands::leave_kill,
        )
    },
    DialectTool::new(
        "TaskOutput",
        "process",
        OUTPUT_ABOUT,
        commands::TASK_OUTPUT,
        commands::enter_task_output,
        commands::leave_task_output,
    ),
    DialectTool::new("TodoRead", "todo_read", LIST_ABOUT, &[], tasks::enter_read, notes::leave_todo_read),
    DialectTool::new("Task", "task", AGENT_ABOUT, agents::TASK, agents::enter_agent, agents::leave_agent),
    DialectTool::new("Glob", "find", GLOB_ABOUT, GLOB, search::enter_glob, search::leave_glob_absolute),
    DialectTool::new("Grep", "grep", GREP_ABOUT, GREP, search::enter_grep, search::leave_grep),
    DialectTool::new("TodoWrite", "todo_write", TODO_ABOUT, TODOS, notes::enter_todos, notes::leave_todos),
    NOTEBOOK_EDIT,
    DialectTool::new(
        "NotebookRead",
        "notebook",
        "Shows the cells of a notebook.",
        notebooks::READ,
        notebooks::enter_read,
        notebooks::leave_read,
    ),
    DialectTool::new("WebFetch", "fetch", FETCH_ABOUT, FETCH, notes::enter_fetch, notes::leave_fetch),
    DialectTool::new("Skill", "skill", SKILL_ABOUT, notes::SKILL, notes::enter_skill, notes::leave_skill),
    DialectTool::new("AskUserQuestion", "ask", ASK_ABOUT, notes::ASK, enter_questions, notes::leave_ask),
    languages::TOOL,
    CLAUDE_LIST,
    CLAUDE_READ,
];

const INSTEAD: &[(&str, &str)] = &[
    ("list", "Bash"),
    ("patch", "Edit"),
    ("image", "Read"),
    ("move", "Bash"),
    ("delete", "Bash"),
    ("search", "Grep"),
    ("lsp_references", "LSP"),
    ("lsp_hover", "LSP"),
    ("lsp_symbols", "LSP"),
    ("lsp_calls", "LSP"),
];

const READ_ABOUT: &str = "Reads a file, with line numbers; up to 2000 lines from `offset`. Shows images.";
const EDIT_ABOUT: &str = "Replaces a text in a file. The text has to occur exactly once, unless `replace_all` is set.";
const MULTI_EDIT_ABOUT: &str = "Makes several replacements in one file, in order: all of them, or none.";
const WRITE_ABOUT: &str = "Writes a file, replacing what is there.";
const BASH_ABOUT: &str =
    "Runs a command in bash, confined to the workspace. A `cd` stays in effect for the next command.";
const OUTPUT_ABOUT: &str = "Shows what a command in the background has printed.";
const STOP_ABOUT: &str = "Stops a command that runs in the background.";
const GLOB_ABOUT: &str = "Finds files by name.";
const GREP_ABOUT: &str = "Searches the content of files with a regular expression.";
const TODO_ABOUT: &str = "Replaces the list of things to do.";
const CREATE_ABOUT: &str = "Adds a task to the list of things to do.";
const GET_ABOUT: &str = "Shows a task.";
const LIST_ABOUT: &str = "Shows the list of things to do.";
const UPDATE_ABOUT: &str =
    "Changes a task: its text, its status, or what it waits for. The status `deleted` removes it.";
const AGENT_ABOUT: &str = "Gives a piece of work to another agent and shows its answer.";
const SEND_ABOUT: &str = "Tells an agent that works in the background something.";
const AGENTS_ABOUT: &str = "Shows the agents that were started, and the answers of those that have ended.";
const FETCH_ABOUT: &str = "Fetches an address and shows its text.";
const SKILL_ABOUT: &str = "Loads the instructions of a skill.";
const ASK_ABOUT: &str = "Asks the person questions.";
