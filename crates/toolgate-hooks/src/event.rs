//! What a client's hook reports, in one form for all clients.

use std::path::PathBuf;

use serde_json::Value;
use toolgate_contract::sha256;

/// Something that a client reports through a hook.
#[derive(Debug, Clone)]
pub struct ClientEvent {
    /// The client's own id of its session.
    pub session: String,
    /// The directory that the client is in, if it says so.
    pub directory: Option<PathBuf>,
    /// What it is about.
    pub moment: EventMoment,
}

/// What an event is about.
#[derive(Debug, Clone)]
pub enum EventMoment {
    /// A tool is about to be used.
    Before(ClientCall),
    /// A tool was used.
    After {
        /// The call, as it was executed.
        call: ClientCall,
        /// What the client's model gets, in the client's own form.
        result: Value,
        /// Whether the client says that the call failed.
        failed: bool,
    },
    /// The person has sent a message.
    Prompt {
        /// The message, which may mention files.
        message: String,
        /// Files that the client says are attached to it.
        files: Vec<String>,
    },
    /// The model has answered.
    TurnEnd,
    /// The session has ended.
    SessionEnd,
    /// Something that nothing depends on.
    Other,
}

/// A use of a client's own tool.
#[derive(Debug, Clone)]
pub struct ClientCall {
    /// The client's id of the call, if it gives one.
    pub id: Option<String>,
    /// The tool, as the client's model knows it.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// Whether the client can ask its person about this call.
    pub can_ask: bool,
}

impl ClientCall {
    /// What the event after the call is recognised by: the client's id, or else the tool with its arguments.
    pub fn key(&self) -> String {
        self.id.clone().unwrap_or_else(|| sha256(format!("{}\0{}", self.tool, self.input)))
    }
}

impl EventMoment {
    /// A message with nothing attached.
    pub(crate) fn message(text: Option<&str>) -> Self {
        Self::Prompt { message: text.unwrap_or_default().to_owned(), files: Vec::new() }
    }
}

impl ClientEvent {
    /// An event of this session that nothing depends on yet.
    pub(crate) fn of(session: Option<&str>, directory: Option<&str>, moment: EventMoment) -> Self {
        let session = session.filter(|session| !session.is_empty()).unwrap_or("unknown");
        Self { session: session.to_owned(), directory: directory.map(PathBuf::from), moment }
    }
}
