//! Lists, agents, skills, pages and questions.

use serde_json::{Value, json};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult, not_here};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::questions::answered_pairs;
use crate::tasks;
use crate::todos::write_todos;

pub(super) fn enter_todos(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(write_todos(&args.objects("todos"), "content"))
}

pub(super) fn leave_todos(returned: &mut Returned<'_>) -> ShownResult {
    let todos = returned.args.value("todos").cloned().unwrap_or_default();
    ShownResult::ok(format!("{todos:#}"))
}

pub(super) fn enter_task(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["task_id"])?;
    let native = tasks::enter_task(args.text("subagent_type"), args.word("prompt"));
    Ok(NativeCall { justification: Some(args.word("description").to_owned()), ..native })
}

pub(super) fn enter_fetch(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let format = match args.text("format") {
        Some("text") => "text",
        Some("html") => "raw",
        _ => "markdown",
    };
    let call = json!({ "url": args.word("url"), "format": format, "timeout_seconds": args.integer("timeout") });
    Ok(NativeCall::new("fetch", call))
}

pub(super) fn leave_fetch(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(returned.text("content"))
}

pub(super) fn enter_skill(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("skill", json!({ "name": args.word("name") })))
}

pub(super) fn leave_skill(returned: &mut Returned<'_>) -> ShownResult {
    let files: Vec<&str> = returned.list("files").iter().filter_map(Value::as_str).collect();
    let files = match files.is_empty() {
        true => String::new(),
        false => format!("\n\nIts files:\n{}", files.join("\n")),
    };
    ShownResult::ok(format!("{}{files}", returned.text("content").trim_end()))
}

pub(super) fn leave_ask(returned: &mut Returned<'_>) -> ShownResult {
    let pairs = answered_pairs(returned);
    ShownResult::ok(format!("User has answered your questions: {pairs}. You can go on with these answers."))
}
