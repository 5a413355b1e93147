//! `todo_write`: replaces the entire todo list. Because it is always replaced completely, it can't diverge from what
//! the model believes is on it.

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_contract::{Access, Effect, Hands, NoteKind, Permission, Risk, SideEffect, Spec, Tool, ToolError};

use crate::support::todo_list::{Todo, TodoList, WorkStatus, check_version};

/// Replaces the todo list.
pub struct TodoWriteTool;

/// The new list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// All of them, in order; at most one in progress.
    #[schemars(length(max = 200))]
    todos: Vec<Todo>,
    /// Refused if there is another by now.
    #[serde(default)]
    expected_version: Option<String>,
}

impl Tool for TodoWriteTool {
    type Args = Args;
    type Output = TodoList;

    const SPEC: Spec = Spec {
        name: "todo_write",
        version: "1.1.0",
        description: "Replace the todo list, for work of several steps: mark one as in progress before you begin \
                      it, and as completed once it is done.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[SideEffect::KeepsNotes],
        parallel: true,
    };

    fn effects(&self, _args: &Args) -> Vec<Effect> {
        [Access::Read, Access::Write].map(|access| Effect::Note { book: NoteKind::Todo, access }).into()
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<TodoList, ToolError> {
        let in_progress = args.todos.iter().enumerate().filter(|(_, todo)| todo.status == WorkStatus::InProgress);
        let in_progress: Vec<String> =
            in_progress.map(|(index, todo)| format!("{} (`{}`)", index + 1, todo.content)).collect();
        if in_progress.len() > 1 {
            let message = format!("Only one task can be in progress, and these are: {}.", in_progress.join(", "));
            return Err(ToolError::invalid_args(message)
                .with_hint("Leave one of them in progress and send the whole list again; nothing was saved."));
        }
        hands.rewrite(NoteKind::Todo, |todos: &mut Vec<Todo>| {
            check_version(todos, args.expected_version.as_deref())?;
            todos.clone_from(&args.todos);
            Ok(())
        })?;
        // As it is stored: without secrets.
        Ok(hands.notes::<Vec<Todo>>(NoteKind::Todo)?.into())
    }
}
