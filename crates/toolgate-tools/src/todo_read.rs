//! `todo_read`: shows the list of things to do (C-55).

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_contract::{Access, Book, Effect, Hands, Permission, Risk, Spec, Tool, ToolError};

use crate::todo::{List, Todo};

/// Shows the list of things to do.
pub struct TodoRead;

/// Nothing to choose.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {}

impl Tool for TodoRead {
    type Args = Args;
    type Output = List;

    const SPEC: Spec = Spec {
        name: "todo_read",
        version: "1.0.0",
        description: "Show the list of things to do that you keep with `todo_write`.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, _args: &Args) -> Vec<Effect> {
        vec![Effect::Note { book: Book::Todo, access: Access::Read }]
    }

    async fn run(&self, _args: Args, hands: &Hands) -> Result<List, ToolError> {
        Ok(hands.notes::<Vec<Todo>>(Book::Todo)?.into())
    }
}
