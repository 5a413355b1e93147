//! `autonous`: the atomic tools of the autonous design. Every result is one envelope: `ok`, `exit_code`, `stdout`, `stderr`, what was
//! truncated, where the next page begins. A file is read by bytes.

mod envelope;
mod events;
mod files;
mod shell;

use crate::dialect::{Dialect, DialectTool, ResultFormat};
use crate::parameter::ParameterKind::{Boolean, Choice, Integer, Text};
use crate::parameter::{Parameter, ParameterKind};

/// The autonous design.
pub static AUTONOUS: Dialect = Dialect {
    format: ResultFormat::Json { notes: &["meta", "notes"] },
    record: Some(events::record),
    ..Dialect::new("autonous", "the design of autonous' tool subsystem", TOOLS, envelope::failure)
};

const FROM_1: ParameterKind = Integer(1, i64::MAX);
const PATH: Parameter = Parameter::required("path", Text, "The path");
const DIRECTORY: Parameter = Parameter::optional("path", Text, "Where to look; the workspace if left out");
const LIMIT: Parameter = Parameter::optional("limit", FROM_1, "Most results");
const CURSOR: Parameter = Parameter::optional("cursor", Text, "The `next_page_cursor` of an earlier result");

const LS: &[Parameter] = &[DIRECTORY, Parameter::optional("recursive", Boolean, "Go into directories"), LIMIT, CURSOR];
const FIND: &[Parameter] = &[
    DIRECTORY,
    Parameter::required("name_pattern", Text, "A glob for names, such as *.go"),
    Parameter::optional("max_depth", FROM_1, "How deep to go"),
    LIMIT,
    CURSOR,
];
const GREP: &[Parameter] = &[
    DIRECTORY,
    Parameter::required("pattern", Text, "A regular expression"),
    Parameter::optional("glob", Text, "Which files"),
    LIMIT,
    CURSOR,
];
const READ: &[Parameter] = &[
    PATH,
    Parameter::optional("offset", Integer(0, i64::MAX), "The first byte, from 0"),
    Parameter::optional("limit_bytes", FROM_1, "Most bytes"),
    CURSOR,
];
const WRITE: &[Parameter] = &[
    PATH,
    Parameter::required("content", Text, "The text"),
    Parameter::optional("mode", Choice(&["append", "overwrite"]), "overwrite if left out"),
];
const EDIT: &[Parameter] = &[
    PATH,
    Parameter::required("find", Text, "The text to replace"),
    Parameter::required("replace", Text, "The text to put in its place"),
    Parameter::optional("all", Boolean, "Replace every occurrence"),
];
const BASH: &[Parameter] = &[
    Parameter::required("cmd", Text, "The command"),
    Parameter::optional("workdir", Text, "The directory to run in"),
    Parameter::optional("timeout_seconds", FROM_1, "Time limit"),
];

static TOOLS: &[DialectTool] = &[
    DialectTool::new("ls", "list", "Lists a directory.", LS, files::enter_ls, files::leave_ls),
    DialectTool::new("find", "find", "Finds files by name.", FIND, files::enter_find, files::leave_find),
    DialectTool::new("grep", "grep", "Searches the content of files.", GREP, files::enter_grep, files::leave_grep),
    DialectTool::new("read", "read", "Reads a piece of a file, by bytes.", READ, files::enter_read, files::leave_read),
    DialectTool::new("write", "write", "Writes a file, in one step.", WRITE, files::enter_write, files::leave_write),
    DialectTool::new(
        "edit",
        "edit",
        "Replaces text in a file, in one step.",
        EDIT,
        files::enter_edit,
        files::leave_edit,
    ),
    DialectTool::new("bash", "shell", "Runs a command, confined.", BASH, shell::enter_bash, shell::leave_bash),
];
