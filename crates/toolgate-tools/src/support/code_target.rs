//! The symbol that a question about code is about, as arguments have it; and the servers that answered, as results have them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{CodeAnswer, CodeTarget, Effect, Hands, ServerReport, ServerStatus, ToolError};

/// A symbol, by name and place. It is part of the arguments of every tool that asks about one.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TargetArgs {
    /// File that has the symbol.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// Line of it, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(crate) line: Option<u32>,
    /// Name, such as `Server.start`. Alone, it is looked for everywhere.
    #[serde(default)]
    pub(crate) symbol: Option<String>,
    // Described nowhere: models know no columns, and clients that do send them.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(crate) column: Option<u32>,
}

impl TargetArgs {
    /// What a question about the symbol reads: servers see the whole workspace.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        workspace_and(self.path.as_slice())
    }

    /// The target, with its path resolved.
    pub(crate) fn resolve(&self, hands: &dyn Hands) -> Result<CodeTarget, ToolError> {
        if self.symbol.is_none() && (self.path.is_none() || self.line.is_none()) {
            return Err(ToolError::invalid_args("Name the `symbol`, with its `path` and `line` if you know them."));
        }
        let path = self.path.as_ref().map(|path| hands.place(path)).transpose()?;
        Ok(CodeTarget { path, line: self.line, column: self.column, symbol: self.symbol.clone() })
    }
}

/// Reading the workspace and these paths.
pub(crate) fn workspace_and(paths: &[String]) -> Vec<Effect> {
    let mut effects = vec![Effect::read(".")];
    effects.extend(paths.iter().filter(|path| *path != ".").map(Effect::read));
    effects
}

/// The servers behind an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AnswerStatus {
    /// `ready`: complete. `indexing`: there may be more.
    pub(crate) server_status: ServerStatus,
    /// Who was asked.
    pub(crate) server: String,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<String>,
    /// What else is to be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

impl AnswerStatus {
    /// Of several servers, the one that knows least counts.
    pub(crate) fn of(answer: &CodeAnswer) -> Self {
        let worst = answer.servers.iter().max_by_key(|report| report.status);
        let names: Vec<&str> = answer.servers.iter().map(|report| report.server.as_str()).collect();
        Self {
            server_status: worst.map_or(ServerStatus::Ready, |report: &ServerReport| report.status),
            server: names.join(", "),
            progress: worst.and_then(|report| report.progress.clone()),
            notes: answer.notes.clone(),
        }
    }
}

/// The error for an answer to another question.
pub(crate) fn other_answer() -> ToolError {
    ToolError::internal("The language server's answer is to another question.")
}
