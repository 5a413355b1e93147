//! `gemini`: the tools of Gemini CLI 0.61. Schemas are open, paths in results are absolute, a search ignores case unless told
//! otherwise, and what comes from outside is wrapped as untrusted.

mod commands;
mod failure;
mod files;
mod notes;
mod search;
mod web;

use crate::dialect::{Dialect, DialectTool, ServerNames};
use crate::parameter::ParameterKind::{Boolean, Choice, Integer, Object, Objects, Text, Texts};
use crate::parameter::{ANY_INTEGER, Parameter};
use crate::server_resources::{GEMINI_LIST, GEMINI_READ};
use crate::tasks::leave_task;

/// Gemini CLI.
pub static GEMINI: Dialect = Dialect {
    is_closed: false,
    // An order within the turn, which the gate keeps by its locks.
    ignored: &["wait_for_previous"],
    unavailable: UNAVAILABLE,
    server_names: ServerNames { prefix: "mcp_", separator: "_" },
    instead: INSTEAD,
    ..Dialect::new("gemini", "Gemini CLI 0.61", TOOLS, failure::failure)
};

const FROM_1: crate::parameter::ParameterKind = Integer(1, i64::MAX);
const FROM_0: crate::parameter::ParameterKind = Integer(0, i64::MAX);
const FILE_PATH: Parameter = Parameter::required("file_path", Text, "The path of the file");
const DIR_PATH: Parameter = Parameter::optional("dir_path", Text, "The directory; the workspace if left out");
const FILTERING: &[Parameter] = &[
    Parameter::optional("respect_git_ignore", Boolean, "Leave out what .gitignore names"),
    Parameter::optional("respect_gemini_ignore", Boolean, "Makes no difference here"),
];

const READ: &[Parameter] = &[
    FILE_PATH,
    Parameter::optional("start_line", FROM_1, "The first line, from 1"),
    Parameter::optional("end_line", FROM_1, "The last line"),
];
const READ_MANY: &[Parameter] = &[
    Parameter::required("include", Texts, "Paths or globs"),
    Parameter::optional("exclude", Texts, "Globs to leave out"),
    Parameter::optional("recursive", Boolean, "Makes no difference here: a glob says how deep it goes"),
    Parameter::optional("useDefaultExcludes", Boolean, "Makes no difference here"),
    Parameter::optional("file_filtering_options", Object(FILTERING), ""),
];
const LIST: &[Parameter] = &[
    Parameter::required("dir_path", Text, "The directory"),
    Parameter::optional("ignore", Texts, "Globs to leave out"),
    Parameter::optional("file_filtering_options", Object(FILTERING), ""),
];
const GLOB: &[Parameter] = &[
    Parameter::required("pattern", Text, "A glob, such as **/*.rs"),
    DIR_PATH,
    Parameter::optional("case_sensitive", Boolean, "Off unless set"),
    FILTERING[0],
    FILTERING[1],
];
const GREP: &[Parameter] = &[
    Parameter::required("pattern", Text, "A regular expression"),
    DIR_PATH,
    Parameter::optional("include_pattern", Text, "Which files, as a glob"),
    Parameter::optional("exclude_pattern", Text, "Leave out lines that match this"),
    Parameter::optional("names_only", Boolean, "Show only the files"),
    Parameter::optional("case_sensitive", Boolean, "Off unless set"),
    Parameter::optional("fixed_strings", Boolean, "The pattern is plain text"),
    Parameter::optional("context", FROM_0, "Lines around each match"),
    Parameter::optional("after", FROM_0, "Lines after each match"),
    Parameter::optional("before", FROM_0, "Lines before each match"),
    Parameter::optional("no_ignore", Boolean, "Search ignored files too"),
    Parameter::optional("max_matches_per_file", FROM_1, "Most matches of one file"),
    Parameter::optional("total_max_matches", FROM_1, "Most matches; 100 if left out"),
];
const REPLACE: &[Parameter] = &[
    FILE_PATH,
    Parameter::required("instruction", Text, "What the change is for"),
    Parameter::required("old_string", Text, "The text to replace; empty for a new file"),
    Parameter::required("new_string", Text, "The text to put in its place"),
    Parameter::optional("allow_multiple", Boolean, "Replace every occurrence"),
];
const WRITE: &[Parameter] = &[FILE_PATH, Parameter::required("content", Text, "The whole new content")];
const SHELL: &[Parameter] = &[
    Parameter::required("command", Text, "The command for bash"),
    Parameter::optional("description", Text, "What the command does, in a few words"),
    DIR_PATH,
    Parameter::optional("is_background", Boolean, "Start it and go on"),
    Parameter::optional("delay_ms", FROM_0, "Makes no difference here"),
];
const OUTPUT: &[Parameter] = &[
    Parameter::required("pid", ANY_INTEGER, "The number of the process"),
    Parameter::optional("lines", FROM_1, "How many of the last lines to show; 100 if left out"),
    Parameter::optional("delay_ms", FROM_0, "How long to wait for output"),
];
const FETCH: &[Parameter] = &[Parameter::required("prompt", Text, "Up to 20 addresses, and what to do with them")];
const TOPIC: &[Parameter] = &[
    Parameter::required("strategic_intent", Text, "What comes next"),
    Parameter::optional("title", Text, "What the work is about"),
    Parameter::optional("summary", Text, "How far it is"),
];
const AGENT: &[Parameter] = &[
    Parameter::required("agent_name", Text, "Which agent"),
    Parameter::required("prompt", Text, "Its task, with everything that it needs to know"),
];
const SKILL: &[Parameter] = &[Parameter::required("name", Text, "The skill's name")];
const TODO: &[Parameter] = &[
    Parameter::required("description", Text, "What is to be done"),
    Parameter::required("status", Choice(&["pending", "in_progress", "completed", "cancelled", "blocked"]), ""),
];
const TODOS: &[Parameter] = &[Parameter::required("todos", Objects(TODO), "The whole list")];
const MEMORY: &[Parameter] = &[Parameter::required("fact", Text, "What to remember")];
const OPTION: &[Parameter] = &[
    Parameter::required("label", Text, "What the person chooses"),
    Parameter::optional("description", Text, "What that means"),
];
const QUESTION: &[Parameter] = &[
    Parameter::required("question", Text, "The question"),
    Parameter::required("header", Text, "A short title"),
    Parameter::required("type", Choice(&["choice", "text", "yesno"]), "How it is answered"),
    Parameter::optional("options", Objects(OPTION), "Answers to choose from"),
    Parameter::optional("multiSelect", Boolean, "Whether several can be chosen"),
    Parameter::optional("placeholder", Text, "Makes no difference here"),
];
const ASK: &[Parameter] = &[Parameter::required("questions", Objects(QUESTION), "One to four questions")];

static TOOLS: &[DialectTool] = &[
    DialectTool::new("read_file", "read", READ_ABOUT, READ, files::enter_read, files::leave_read),
    DialectTool::new("read_many_files", "read", MANY_ABOUT, READ_MANY, files::enter_many, files::leave_many),
    DialectTool::new("list_directory", "list", "Lists a directory.", LIST, files::enter_list, files::leave_list),
    DialectTool::new("glob", "find", GLOB_ABOUT, GLOB, search::enter_glob, search::leave_glob),
    DialectTool {
        aliases: &["search_file_content"],
        ..DialectTool::new("grep_search", "grep", GREP_ABOUT, GREP, search::enter_grep, search::leave_grep)
    },
    DialectTool::new("replace", "edit", REPLACE_ABOUT, REPLACE, files::enter_replace, files::leave_replace),
    DialectTool::new("write_file", "write", WRITE_ABOUT, WRITE, files::enter_write, files::leave_write),
    DialectTool::new("run_shell_command", "shell", SHELL_ABOUT, SHELL, commands::enter_shell, commands::leave_shell),
    DialectTool::new(
        "list_background_processes",
        "process",
        "Lists the commands that run in the background.",
        &[],
        commands::enter_list,
        commands::leave_list,
    ),
    DialectTool::new(
        "read_background_output",
        "process",
        "Shows the end of what a command in the background has printed.",
        OUTPUT,
        commands::enter_output,
        commands::leave_output,
    ),
    DialectTool::new("web_fetch", "fetch", FETCH_ABOUT, FETCH, web::enter_fetch, web::leave_fetch),
    DialectTool::new("update_topic", "display", TOPIC_ABOUT, TOPIC, notes::enter_topic, notes::leave_topic),
    DialectTool::new("invoke_agent", "task", AGENT_ABOUT, AGENT, notes::enter_agent, leave_task),
    DialectTool::new("activate_skill", "skill", SKILL_ABOUT, SKILL, notes::enter_skill, notes::leave_skill),
    DialectTool::new("write_todos", "todo_write", TODO_ABOUT, TODOS, notes::enter_todos, notes::leave_todos),
    DialectTool::new("save_memory", "memory", MEMORY_ABOUT, MEMORY, notes::enter_memory, notes::leave_memory),
    DialectTool::new("ask_user", "ask", ASK_ABOUT, ASK, notes::enter_ask, notes::leave_ask),
    GEMINI_LIST,
    GEMINI_READ,
];

const INSTEAD: &[(&str, &str)] = &[
    ("patch", "replace"),
    ("image", "read_file"),
    ("todo_read", "write_todos"),
    ("move", "run_shell_command"),
    ("delete", "run_shell_command"),
    ("search", "grep_search"),
];

const UNAVAILABLE: &[(&str, &str)] = &[
    ("google_web_search", "there is no web search. Fetch a known address with `web_fetch`."),
    ("enter_plan_mode", "plan mode belongs to the client itself. Say your plan with `update_topic`."),
    ("exit_plan_mode", "plan mode belongs to the client itself. Say your plan with `update_topic`."),
];

const READ_ABOUT: &str = "Reads a file, or a range of its lines. Shows images.";
const MANY_ABOUT: &str = "Reads several files, by paths or globs.";
const GLOB_ABOUT: &str = "Finds files by name, the newest first.";
const GREP_ABOUT: &str = "Searches the content of files with a regular expression.";
const REPLACE_ABOUT: &str = "Replaces a text in a file. It has to occur exactly once, unless `allow_multiple` is set.";
const WRITE_ABOUT: &str = "Writes a file, replacing what is there.";
const SHELL_ABOUT: &str = "Runs a command in bash, confined to the workspace.";
const FETCH_ABOUT: &str = "Fetches the addresses in the prompt and shows their text.";
const TOPIC_ABOUT: &str = "Tells the person what the work is about and what comes next.";
const AGENT_ABOUT: &str = "Gives a piece of work to another agent and gets its answer.";
const SKILL_ABOUT: &str = "Loads the instructions of a skill.";
const TODO_ABOUT: &str = "Replaces the list of things to do.";
const MEMORY_ABOUT: &str = "Remembers a fact beyond this session.";
const ASK_ABOUT: &str = "Asks the person questions.";
