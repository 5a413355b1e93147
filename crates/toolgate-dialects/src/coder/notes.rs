//! Lists of things to do, skills and agents.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::json_result::{object, with_fields};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::tasks;
use crate::todos::write_todos;

pub(super) fn enter_todoread(_: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("todo_read", json!({})))
}

pub(super) fn enter_todowrite(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(write_todos(&args.objects("todos"), "content"))
}

/// Tasks that were written without an id have their number as one.
pub(super) fn leave_todos(returned: &mut Returned<'_>) -> ShownResult {
    let item = |(number, todo): (usize, &Value)| {
        let id = todo["id"].as_str().map_or_else(|| number.to_string(), str::to_owned);
        json!({ "id": id, "content": todo["content"], "status": todo["status"], "priority": todo["priority"] })
    };
    let items: Vec<Value> = (1..).zip(returned.list("todos")).map(item).collect();
    let in_progress = items.iter().filter(|item| item["status"] == "in_progress").count();
    object(json!({
        "ok": true,
        "session_id": returned.memory.session,
        "count": items.len(),
        "in_progress": in_progress,
        "items": items,
    }))
}

pub(super) fn enter_skill(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let name = args.text("name");
    match args.word("action") {
        "list" => Ok(NativeCall::new("skill", json!({}))),
        _ if name.is_none() => Err(ToolError::invalid_args("`load` needs the `name` of a skill.").into()),
        _ => Ok(NativeCall::new("skill", json!({ "name": name }))),
    }
}

pub(super) fn leave_skill(returned: &mut Returned<'_>) -> ShownResult {
    if returned.args.word("action") == "load" {
        return object(json!({
            "ok": true,
            "name": returned.args.word("name"),
            "content": returned.field("content"),
        }));
    }
    let skill = |skill: &Value| json!({ "name": skill["name"], "description": skill["description"] });
    let skills: Vec<Value> = returned.list("skills").iter().map(skill).collect();
    object(json!({ "ok": true, "skills": skills }))
}

pub(super) fn enter_task(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(tasks::enter_task(args.text("agent"), args.word("objective")))
}

pub(super) fn leave_task(returned: &mut Returned<'_>) -> ShownResult {
    object(with_fields(json!({}), returned, &["ok", "agent", "summary"]))
}
