//! The processes that other programs run in the workspace, such as the server of an MCP client or an agent in a terminal. Only
//! the program that opens the console knows how to reach them.

use serde::{Deserialize, Serialize};
use toolgate_contract::{BoxFuture, ProcessHandle, Signal, TerminalSize, ToolError};
use toolgate_runtime::{ProcessView, SessionProcess};

/// What a person does with a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessControl {
    /// Types this.
    Type(String),
    /// Gives its terminal another size.
    Resize(TerminalSize),
    /// Interrupts it, as Ctrl-C does.
    Interrupt,
    /// Kills it, with everything that it started.
    Kill,
}

impl ProcessControl {
    /// Does it with a process of this program.
    pub async fn apply(self, process: &SessionProcess) -> Result<(), ToolError> {
        match self {
            Self::Type(text) => process.write(text.as_bytes()).await,
            Self::Resize(size) => process.resize(size),
            Self::Interrupt => process.signal(Signal::Int),
            Self::Kill => {
                process.kill();
                Ok(())
            }
        }
    }
}

/// The processes that other programs run in the workspace.
pub trait OtherProcesses: Send + Sync {
    /// All of them.
    fn list(&self) -> BoxFuture<'_, Vec<ProcessView>>;
    /// One of them, with what it shows.
    fn show<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<ProcessView>>;
    /// Does this with one of them, in a person's name; false if no program has it.
    fn act<'a>(&'a self, id: &'a str, action: ProcessControl, by: &'a str) -> BoxFuture<'a, Result<bool, ToolError>>;
}
