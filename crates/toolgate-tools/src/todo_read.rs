//! `todo_read`: shows the todo list.

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_contract::{Access, Effect, Hands, NoteKind, Permission, Risk, Spec, Tool, ToolError};

use crate::support::todo_list::{Todo, TodoList};

/// Shows the todo list.
pub struct TodoReadTool;

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {}

impl Tool for TodoReadTool {
    type Args = Args;
    type Output = TodoList;

    const SPEC: Spec = Spec {
        name: "todo_read",
        version: "1.1.0",
        description: "Show the todo list that you keep with `todo_write`.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, _args: &Args) -> Vec<Effect> {
        vec![Effect::Note { book: NoteKind::Todo, access: Access::Read }]
    }

    async fn run(&self, _args: Args, hands: &dyn Hands) -> Result<TodoList, ToolError> {
        Ok(hands.notes::<Vec<Todo>>(NoteKind::Todo)?.into())
    }
}
