//! `TaskCreate`, `TaskGet`, `TaskList` and `TaskUpdate`: single tasks with numbers, on the native list, which is always written whole.
//! Each change reads the list first and is refused if somebody else has changed it meanwhile. What a task has beyond its text and its
//! status is in its note, one line each.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult, not_here};
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::{Any, Choice, Text, Texts};
use crate::parameter::{Arguments, Parameter};

const METADATA: Parameter = Parameter::optional("metadata", Any, "Not kept here");
const ACTIVE_FORM: Parameter = Parameter::optional("activeForm", Text, "What to show while it is in progress");
const TASK_ID: Parameter = Parameter::required("taskId", Text, "The task's number");
pub(super) const CREATE: &[Parameter] = &[
    Parameter::required("subject", Text, "What is to be done, in a few words"),
    Parameter::required("description", Text, "What that means"),
    ACTIVE_FORM,
    METADATA,
];
pub(super) const GET: &[Parameter] = &[TASK_ID];
pub(super) const LIST: &[Parameter] = &[];
pub(super) const UPDATE: &[Parameter] = &[
    TASK_ID,
    Parameter::optional("subject", Text, ""),
    Parameter::optional("description", Text, ""),
    ACTIVE_FORM,
    Parameter::optional("status", Choice(&["pending", "in_progress", "completed", "deleted"]), ""),
    Parameter::optional("addBlocks", Texts, "Tasks that wait for this one"),
    Parameter::optional("addBlockedBy", Texts, "Tasks that this one waits for"),
    Parameter::optional("owner", Text, "Who does it"),
    METADATA,
];

/// The lines of a note that hold what a task has beyond its description.
const BLOCKED_BY: &str = "Blocked by: ";
const OWNER: &str = "Owner: ";
const ACTIVE: &str = "While in progress: ";

/// A task of the native list.
#[derive(Debug, Clone, PartialEq)]
struct Task {
    id: String,
    subject: String,
    status: String,
    priority: Value,
    description: String,
    blocked_by: Vec<String>,
    owner: Option<String>,
    active_form: Option<String>,
}

impl Task {
    /// A task that was written without a number has that of its place.
    fn read(index: usize, todo: &Value) -> Self {
        let text = |name: &str| todo[name].as_str().unwrap_or_default().to_owned();
        let note = text("note");
        let line = |mark: &str| note.lines().rev().find_map(|line| line.strip_prefix(mark)).map(str::to_owned);
        let marks = [BLOCKED_BY, OWNER, ACTIVE];
        let described = note.lines().filter(|line| !marks.iter().any(|mark| line.starts_with(mark)));
        let blocked_by = line(BLOCKED_BY).unwrap_or_default();
        Self {
            id: Some(text("id")).filter(|id| !id.is_empty()).unwrap_or_else(|| (index + 1).to_string()),
            subject: text("content"),
            status: text("status"),
            priority: todo["priority"].clone(),
            description: described.collect::<Vec<_>>().join("\n"),
            blocked_by: blocked_by.split(", ").filter_map(|id| id.strip_prefix('#')).map(str::to_owned).collect(),
            owner: line(OWNER),
            active_form: line(ACTIVE),
        }
    }

    fn written(&self) -> Value {
        let blocked_by: Vec<String> = self.blocked_by.iter().map(|id| format!("#{id}")).collect();
        let blocked_by = Some(blocked_by.join(", ")).filter(|ids| !ids.is_empty());
        let lines = [
            Some(self.description.clone()).filter(|text| !text.is_empty()),
            blocked_by.map(|ids| format!("{BLOCKED_BY}{ids}")),
            self.owner.as_ref().map(|owner| format!("{OWNER}{owner}")),
            self.active_form.as_ref().map(|form| format!("{ACTIVE}{form}")),
        ];
        let note: Vec<String> = lines.into_iter().flatten().collect();
        let mut todo = json!({ "content": self.subject, "status": self.status, "id": self.id });
        if !self.priority.is_null() {
            todo["priority"] = self.priority.clone();
        }
        if !note.is_empty() {
            todo["note"] = note.join("\n").into();
        }
        todo
    }
}

fn tasks(payload: Option<&Value>) -> Vec<Task> {
    let todos = payload.and_then(|list| list["todos"].as_array()).map(Vec::as_slice).unwrap_or_default();
    todos.iter().enumerate().map(|(index, todo)| Task::read(index, todo)).collect()
}

/// Writes the list, unless somebody else has changed it.
fn write(tasks: &[Task], answered: &Answered<'_>) -> NativeCall {
    let todos: Vec<Value> = tasks.iter().map(Task::written).collect();
    let version = answered.reply.payload.as_ref().map(|list| list["version"].clone());
    NativeCall::new("todo_write", json!({ "todos": todos, "expected_version": version }))
}

/// Reads the list; what is done with it then is decided by what it holds.
fn read_then(then: crate::dialect::NextCall) -> NativeCall {
    NativeCall { then: Some(then), ..NativeCall::new("todo_read", json!({})) }
}

pub(super) fn enter_create(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["metadata"])?;
    Ok(read_then(|answered| {
        if answered.reply.error.is_some() {
            return Ok(None);
        }
        let mut all = tasks(answered.reply.payload.as_ref());
        all.push(Task {
            id: next_id(&all, answered.memory),
            subject: answered.args.word("subject").to_owned(),
            status: "pending".to_owned(),
            priority: Value::Null,
            description: answered.args.word("description").to_owned(),
            blocked_by: Vec::new(),
            owner: None,
            active_form: answered.args.text("activeForm").map(str::to_owned),
        });
        Ok(Some(write(&all, answered)))
    }))
}

/// A number that no task has had in this session.
fn next_id(all: &[Task], memory: &DialectMemory) -> String {
    let highest = all.iter().filter_map(|task| task.id.parse::<u64>().ok()).max().unwrap_or(0);
    (highest.max(memory.last_task) + 1).to_string()
}

pub(super) fn leave_create(returned: &mut Returned<'_>) -> ShownResult {
    let all = tasks(returned.reply.payload.as_ref());
    let Some(task) = all.last() else { return ShownResult::error("The task isn't on the list.") };
    returned.memory.last_task = returned.memory.last_task.max(task.id.parse().unwrap_or(0));
    ShownResult::ok(format!("Task #{} created successfully: {}", task.id, task.subject))
}

pub(super) fn enter_read(_: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("todo_read", json!({})))
}

pub(super) fn leave_get(returned: &mut Returned<'_>) -> ShownResult {
    let all = tasks(returned.reply.payload.as_ref());
    let Some(task) = all.iter().find(|task| task.id == returned.args.word("taskId")) else {
        return ShownResult::ok("Task not found");
    };
    let mut lines = vec![
        format!("Task #{}: {}", task.id, task.subject),
        format!("Status: {}", task.status),
        format!("Description: {}", task.description),
    ];
    lines.extend(blockers(task, &all).map(|ids| format!("Blocked by: {ids}")));
    ShownResult::ok(lines.join("\n"))
}

pub(super) fn leave_list(returned: &mut Returned<'_>) -> ShownResult {
    let all = tasks(returned.reply.payload.as_ref());
    let line = |task: &Task| {
        let blocked = blockers(task, &all).map(|ids| format!(" [blocked by {ids}]")).unwrap_or_default();
        let owner = task.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
        format!("#{} [{}] {}{owner}{blocked}", task.id, task.status, task.subject)
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    ShownResult::ok(if lines.is_empty() { "No tasks found".to_owned() } else { lines.join("\n") })
}

/// The open tasks that a task waits for.
fn blockers(task: &Task, all: &[Task]) -> Option<String> {
    let is_open = |id: &&String| all.iter().any(|other| other.id == **id && other.status != "completed");
    let ids: Vec<String> = task.blocked_by.iter().filter(is_open).map(|id| format!("#{id}")).collect();
    (!ids.is_empty()).then(|| ids.join(", "))
}

pub(super) fn enter_update(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["metadata"])?;
    if changed_fields(args).is_empty() {
        return Err(ToolError::invalid_args("Nothing of the task is to be changed.").into());
    }
    Ok(read_then(|answered| {
        let mut all = tasks(answered.reply.payload.as_ref());
        let id = answered.args.word("taskId");
        if answered.reply.error.is_some() || !all.iter().any(|task| task.id == id) {
            return Ok(None);
        }
        update(&mut all, id, answered.args);
        Ok(Some(write(&all, answered)))
    }))
}

fn update(all: &mut Vec<Task>, id: &str, args: &Arguments) {
    if args.text("status") == Some("deleted") {
        all.retain(|task| task.id != id);
        return;
    }
    let blocks = args.texts("addBlocks").unwrap_or_default();
    for task in all.iter_mut().filter(|task| blocks.contains(&task.id.as_str())) {
        add(&mut task.blocked_by, id);
    }
    let Some(task) = all.iter_mut().find(|task| task.id == id) else { return };
    let set = |field: &mut String, name: &str| {
        if let Some(text) = args.text(name) {
            text.clone_into(field);
        }
    };
    set(&mut task.subject, "subject");
    set(&mut task.description, "description");
    set(&mut task.status, "status");
    task.owner = args.text("owner").map(str::to_owned).or(task.owner.take());
    task.active_form = args.text("activeForm").map(str::to_owned).or(task.active_form.take());
    args.texts("addBlockedBy").unwrap_or_default().into_iter().for_each(|other| add(&mut task.blocked_by, other));
}

fn add(ids: &mut Vec<String>, id: &str) {
    if !ids.iter().any(|known| known == id) {
        ids.push(id.to_owned());
    }
}

/// What a call changes, as the client names it.
fn changed_fields(args: &Arguments) -> Vec<&'static str> {
    if args.text("status") == Some("deleted") {
        return vec!["deleted"];
    }
    let names = [
        ("subject", "subject"),
        ("description", "description"),
        ("activeForm", "activeForm"),
        ("owner", "owner"),
        ("status", "status"),
        ("addBlocks", "blocks"),
        ("addBlockedBy", "blockedBy"),
    ];
    names.into_iter().filter(|(name, _)| args.value(name).is_some()).map(|(_, shown)| shown).collect()
}

pub(super) fn leave_update(returned: &mut Returned<'_>) -> ShownResult {
    // Nothing was written where no task has the number.
    if returned.earlier.is_empty() {
        return ShownResult::ok("Task not found");
    }
    let id = returned.args.word("taskId");
    let shown = format!("Updated task #{id} {}", changed_fields(returned.args).join(", "));
    returned.memory.last_task = returned.memory.last_task.max(id.parse().unwrap_or(0));
    ShownResult::ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_the_same_after_it_was_written() {
        let task = Task {
            id: "2".into(),
            subject: "t".into(),
            status: "pending".into(),
            priority: json!("medium"),
            description: "one\ntwo".into(),
            blocked_by: vec!["1".into(), "7".into()],
            owner: Some("ada".into()),
            active_form: Some("doing t".into()),
        };
        assert_eq!(Task::read(0, &task.written()), task);
        let plain = json!({ "content": "t", "status": "pending", "priority": "medium" });
        assert_eq!((Task::read(4, &plain).id.as_str(), Task::read(4, &plain).description.as_str()), ("5", ""));
    }
}
