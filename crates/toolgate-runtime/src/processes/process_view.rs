//! A running process as pages show it, whichever program runs it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{ProcessHandle, schemars};

use super::{ScreenCells, SessionProcess};

/// A running process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessView {
    /// Its handle.
    pub id: String,
    /// The session that started it.
    pub session: String,
    /// The command line.
    pub command: String,
    /// The directory that it was started in.
    pub workdir: String,
    /// When it was started.
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// Whether it goes on without its call.
    pub detached: bool,
    /// Whether another program than this server runs it.
    #[serde(default)]
    pub elsewhere: bool,
    /// What its terminal shows; only where one process is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<ScreenCells>,
    /// The end of its output, of a process without a terminal; only where one process is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl ProcessView {
    /// What a list shows of it.
    pub fn of(process: &SessionProcess) -> Self {
        let facts = process.facts();
        Self {
            id: facts.id.clone(),
            session: process.session.clone(),
            command: facts.command.clone(),
            workdir: facts.workdir.clone(),
            started: facts.started,
            terminal: facts.terminal,
            detached: process.is_detached(),
            elsewhere: false,
            screen: None,
            output: None,
        }
    }

    /// With what its terminal shows, or the end of its output.
    pub fn with_screen(process: &SessionProcess) -> Self {
        let screen = process.cells();
        let output = screen.is_none().then(|| String::from_utf8_lossy(&process.last_lines()).into_owned());
        Self { screen, output, ..Self::of(process) }
    }
}
