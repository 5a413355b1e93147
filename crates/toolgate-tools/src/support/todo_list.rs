//! The list of things to do, as `todo_write` keeps it and `todo_read` shows it (C-55).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkStatus {
    /// Not begun.
    Pending,
    /// Being done; at most one is.
    InProgress,
    /// Done.
    Completed,
}

/// How much it matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Priority {
    /// Much.
    High,
    /// As usual.
    #[default]
    Medium,
    /// Little.
    Low,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    /// What is to be done.
    #[schemars(length(min = 1, max = 2000))]
    pub(crate) content: String,
    /// How far it is.
    pub(crate) status: WorkStatus,
    /// How much it matters.
    #[serde(default)]
    pub(crate) priority: Priority,
}

/// The list, and how much of it is left.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TodoList {
    /// Everything on it, in order.
    todos: Vec<Todo>,
    /// How many aren't completed.
    open: usize,
}

impl From<Vec<Todo>> for TodoList {
    fn from(todos: Vec<Todo>) -> Self {
        let open = todos.iter().filter(|todo| todo.status != WorkStatus::Completed).count();
        Self { todos, open }
    }
}
