//! `skills`: the tools runtime of the skills-agent design. Results are JSON objects, large output is a reference, and errors have one
//! of its types.

mod audit;
mod failure;
mod files;
mod script;

use crate::dialect::{Dialect, DialectTool, ResultFormat};
use crate::parameter::Parameter;
use crate::parameter::ParameterKind::{Any, Boolean, Choice, Integer, Object, Text, Texts};

/// The skills-agent design.
pub static SKILLS: Dialect = Dialect {
    format: ResultFormat::Json { notes: &["notes"] },
    record: Some(audit::record),
    ..Dialect::new("skills", "the design of skills-agent's tools runtime", TOOLS, failure::failure)
};

const PATH: Parameter = Parameter::required("path", Text, "The path");
const READ: &[Parameter] = &[
    PATH,
    Parameter::optional("offset", Integer(1, i64::MAX), "The line to read on from, where an excerpt was truncated"),
];
const LIST: &[Parameter] = &[Parameter::optional("path", Text, "The directory; the workspace if left out")];
const GREP: &[Parameter] = &[
    Parameter::required("pattern", Text, "A regular expression"),
    Parameter::optional("path", Text, "Where to search; the workspace if left out"),
    Parameter::optional("files_only", Boolean, "Show only the files"),
];
const SKILL: &[Parameter] = &[
    Parameter::required("name", Text, "The skill's name"),
    Parameter::optional("source", Text, "Where the skill comes from, such as project"),
];
const SCRIPT: &[Parameter] = &[
    Parameter::required("skill", Object(SKILL), "The skill"),
    Parameter::required("relative_path", Text, "The script's path in the skill's directory: scripts/…"),
    Parameter::optional("args", Texts, "Its arguments"),
];
const WRITE: &[Parameter] = &[PATH, Parameter::required("content", Text, "The whole new content")];
const DELETE: &[Parameter] = &[PATH];
const REQUEST: &[Parameter] = &[
    Parameter::required("url", Text, "The address"),
    Parameter::optional("method", Choice(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]), ""),
    Parameter::optional("headers", Any, "Headers to send, by name"),
    Parameter::optional("body", Text, "The body"),
];

static TOOLS: &[DialectTool] = &[
    DialectTool::new("read_file", "read", "Reads a file.", READ, files::enter_read, files::leave_read),
    DialectTool::new("list_dir", "list", "Lists a directory.", LIST, files::enter_list, files::leave_list),
    DialectTool::new("grep", "grep", "Searches the content of files.", GREP, files::enter_grep, files::leave_grep),
    DialectTool::new("run_script", "script", SCRIPT_ABOUT, SCRIPT, script::enter_script, script::leave_script),
    DialectTool::new("write_file", "write", "Writes a whole file.", WRITE, files::enter_write, files::leave_write),
    DialectTool::new("delete_file", "delete", "Deletes a file.", DELETE, files::enter_delete, files::leave_delete),
    DialectTool::new("network_request", "fetch", REQUEST_ABOUT, REQUEST, files::enter_request, files::leave_request),
];

const SCRIPT_ABOUT: &str = "Runs a script of a skill, without a shell, confined.";
const REQUEST_ABOUT: &str = "Makes an HTTP request.";
