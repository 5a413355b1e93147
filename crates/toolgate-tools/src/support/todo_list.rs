//! The todo list, as `todo_write` stores it and `todo_read` shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{ErrorCode, ToolError, sha256};

/// Characters of a hash that name a version of the list.
const VERSION_CHARACTERS: usize = 12;

/// The progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkStatus {
    // The names say it all, and the list of tools has to stay short.
    Pending,
    InProgress,
    Completed,
}

/// How important it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Priority {
    High,
    #[default]
    Medium,
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
    /// Your own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub(crate) id: Option<String>,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000))]
    pub(crate) note: Option<String>,
}

/// The list, and how much is left.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TodoList {
    /// Every task, in order.
    todos: Vec<Todo>,
    /// How many aren't completed.
    open: usize,
    /// Names this state of the list, for `expected_version`.
    version: String,
}

impl From<Vec<Todo>> for TodoList {
    fn from(todos: Vec<Todo>) -> Self {
        let open = todos.iter().filter(|todo| todo.status != WorkStatus::Completed).count();
        let version = version(&todos);
        Self { todos, open, version }
    }
}

/// The name of a state of the list. It is made of the content: a list that is the same again has the same version again.
fn version(todos: &[Todo]) -> String {
    let mut hash = sha256(serde_json::to_vec(todos).unwrap_or_default());
    hash.truncate(VERSION_CHARACTERS);
    hash
}

/// Refuses to replace another state of the list than the expected one.
pub(crate) fn check_version(todos: &[Todo], expected: Option<&str>) -> Result<(), ToolError> {
    let now = version(todos);
    match expected.filter(|expected| *expected != now) {
        None => Ok(()),
        Some(expected) => {
            let message = format!("The todo list isn't version {expected} any more; it is {now}. Nothing was saved.");
            Err(ToolError::new(ErrorCode::StaleFile, message)
                .with_hint("Use `todo_read`, make your change on that list, and send it with its version."))
        }
    }
}
