//! The only access that a cleared tool has to the system: exactly its declared effects, nothing ambient. The gate gives a
//! tool its [`Hands`] for one call; a tool that uses something it didn't declare gets an error from them. What the hands did
//! is counted by the gate, so a tool can't forget to report it.

mod files;
mod processes;

use std::fs::File;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::files::FileHands;
pub use self::processes::ProcessHands;
use crate::{
    Agents, AllowedTools, ArtifactRef, BoxFuture, CodeAnswer, CodeQuestion, Effect, ErrorCode, Message, NoteKind,
    NoteUpdate, Preview, Question, QuestionOutcome, ResourceRequest, SearchAnswer, SearchQuestion, ServerCall,
    ServerDescription, ServerReply, SkillCandidate, ToolError, WebRequest, WebResponse,
};

/// Work for a thread that may block.
pub type BlockingWork = Box<dyn FnOnce(&dyn Hands) + Send>;

/// The hands of one cleared call.
pub trait Hands: FileHands + ProcessHands + Send + Sync {
    /// The run that the call belongs to.
    fn run(&self) -> &str;
    /// The id of the call.
    fn call(&self) -> &str;
    /// Cancelled when the call ends, for everything that must not outlive it.
    fn cancelled(&self) -> CancellationToken;
    /// Whether the call was cancelled; long loops check this.
    fn is_cancelled(&self) -> bool;
    /// Runs work on a thread that may block, and waits for it. Tools use [`blocking`](#method.blocking), which gives the
    /// result back.
    fn run_blocking(&self, work: BlockingWork) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Shows the person a message. Returns whether a person was there to see it.
    fn say(&self, message: &Message) -> Result<bool, ToolError>;
    /// Asks the person, and waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<QuestionOutcome, ToolError>>;

    /// The agent's notes of one kind as they are stored; none if nothing was written yet. Tools use
    /// [`notes`](#method.notes), which parses them.
    fn stored_notes(&self, book: NoteKind) -> Result<Option<Value>, ToolError>;
    /// Rewrites the agent's notes of one kind atomically, as they are stored. Tools use [`rewrite`](#method.rewrite), which
    /// parses them.
    fn rewrite_stored(&self, book: NoteKind, change: &mut NoteUpdate<'_>) -> Result<(), ToolError>;

    /// The directories that may be skills.
    fn skills(&self) -> Result<Vec<SkillCandidate>, ToolError>;
    /// The content of a file in a skill's directory, by its relative path.
    fn skill_file(&self, skill: &str, path: &str) -> Result<Vec<u8>, ToolError>;
    /// Limits the session to a skill's tools, or pre-approves them, as configured.
    fn activate(&self, skill: &SkillCandidate, tools: Vec<String>) -> Result<AllowedTools, ToolError>;

    /// Opens stored output.
    fn recall(&self, id: &str) -> Result<(ArtifactRef, File), ToolError>;
    /// Stores something that doesn't fit in a JSON reply, such as an image.
    fn keep(&self, bytes: &[u8], mime: &str) -> Result<ArtifactRef, ToolError>;
    /// Reports that there is more, and the cursor that requests it.
    fn more(&self, cursor: String);

    /// Fetches from a declared host; the egress policy judges redirects.
    fn fetch<'a>(
        &'a self,
        request: WebRequest,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<WebResponse, ToolError>>;
    /// Ranks places at and beneath declared paths for a question.
    fn search(&self, question: &SearchQuestion) -> Result<SearchAnswer, ToolError>;
    /// Calls a tool of another MCP server, which the call declared with its definition. The server is started if it doesn't run.
    fn call_server<'a>(&'a self, server: &'a str, call: ServerCall) -> BoxFuture<'a, Result<ServerReply, ToolError>>;
    /// Asks another MCP server for its resources, for a call that declared that with the server's identity.
    fn server_resource<'a>(
        &'a self,
        server: &'a str,
        request: ResourceRequest,
    ) -> BoxFuture<'a, Result<Value, ToolError>>;
    /// What another MCP server says of itself, for a call that declared to start it.
    fn describe_server<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<ServerDescription, ToolError>>;
    /// Asks language servers about code that the call declared to read: the workspace, and each path of the question.
    fn ask_about_code(&self, question: CodeQuestion) -> BoxFuture<'_, Result<CodeAnswer, ToolError>>;
    /// States effects that only running could tell, with what they would change. If the call has them already, it goes on.
    /// Otherwise it has to end with this error: the gate judges the effects and runs the call once more, with them.
    fn state_further(&self, effects: Vec<Effect>, preview: Preview) -> Result<(), ToolError>;
    /// Other agents, for a call that declared this agent; and the id of the call, which is their parent.
    fn agents(&self, agent: &str) -> Result<(&dyn Agents, &str), ToolError>;
}

impl dyn Hands + '_ {
    /// Runs long work on a thread that may block. When the call is cancelled, the work continues until it checks
    /// [`Hands::is_cancelled`].
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Hands) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (sender, result) = oneshot::channel();
        // Where nobody waits any more, nobody misses the result.
        self.run_blocking(Box::new(move |hands| drop(sender.send(work(hands))))).await?;
        result.await.unwrap_or_else(|_| Err(ToolError::cancelled()))
    }

    /// The agent's notes of one kind.
    pub fn notes<T: DeserializeOwned + Default>(&self, book: NoteKind) -> Result<T, ToolError> {
        parse_notes(book, self.stored_notes(book)?)
    }

    /// Rewrites the agent's notes of one kind atomically.
    pub fn rewrite<T: DeserializeOwned + Default + Serialize, R>(
        &self,
        book: NoteKind,
        mut change: impl FnMut(&mut T) -> Result<R, ToolError>,
    ) -> Result<R, ToolError> {
        let mut outcome = None;
        self.rewrite_stored(book, &mut |before| {
            let mut notes = parse_notes(book, before)?;
            outcome = Some(change(&mut notes)?);
            serde_json::to_value(&notes).map_err(|fault| ToolError::internal(fault.to_string()))
        })?;
        outcome.ok_or_else(|| ToolError::internal("The notes were stored without being rewritten."))
    }
}

/// Notes in the format of their tool.
fn parse_notes<T: DeserializeOwned + Default>(book: NoteKind, notes: Option<Value>) -> Result<T, ToolError> {
    let Some(notes) = notes else { return Ok(T::default()) };
    serde_json::from_value(notes).map_err(|fault| {
        ToolError::new(ErrorCode::IoError, format!("The stored content of {book} can't be parsed: {fault}."))
            .with_hint("Ask the person to remove its file from the workspace's `.toolgate` directory.")
    })
}
