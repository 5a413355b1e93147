//! The todo list, as `todo_write` stores it and `todo_read` shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkStatus {
    /// To do.
    Pending,
    /// In progress; at most one.
    InProgress,
    /// Done.
    Completed,
}

/// How important it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Priority {
    /// High.
    High,
    /// Normal.
    #[default]
    Medium,
    /// Low.
    Low,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    /// What to do.
    #[schemars(length(min = 1, max = 2000))]
    pub(crate) content: String,
    /// Its progress.
    pub(crate) status: WorkStatus,
    /// How important it is.
    #[serde(default)]
    pub(crate) priority: Priority,
}

/// The list, and how much is left.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TodoList {
    /// Every task, in order.
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
