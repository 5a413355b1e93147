//! Lists of things to do, as clients write them. Natively a task is pending, in progress or completed; what a client says beyond
//! that is kept in the task's note.

use serde_json::{Value, json};

use crate::dialect::NativeCall;
use crate::parameter::Arguments;

/// A status that only some clients know, and the native one that it counts as.
const OTHER_STATUSES: &[(&str, &str)] = &[("cancelled", "completed"), ("blocked", "pending")];

/// The native call that replaces the list by these tasks, whose text is in this field.
pub(crate) fn write_todos(todos: &[Arguments], content: &str) -> NativeCall {
    let todos: Vec<Value> = todos.iter().map(|todo| native_todo(todo, content)).collect();
    NativeCall::new("todo_write", json!({ "todos": todos }))
}

fn native_todo(todo: &Arguments, content: &str) -> Value {
    let given = todo.word("status");
    let other = OTHER_STATUSES.iter().find(|(name, _)| *name == given);
    let mut native = json!({ "content": todo.word(content), "status": other.map_or(given, |(_, native)| *native) });
    let note = other.map(|(name, _)| *name).or(todo.text("activeForm"));
    for (name, value) in [("priority", todo.text("priority")), ("id", todo.text("id")), ("note", note)] {
        if let Some(value) = value {
            native[name] = value.into();
        }
    }
    native
}
