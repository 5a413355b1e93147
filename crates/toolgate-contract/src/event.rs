//! One recorded event. The journal stores events; the tree of a run is rebuilt from them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ArtifactRef, Change, Denial, Effect, Enforced, ErrorClass, FinishReason, FoldedDirectory, HookedTool, Message,
    Pids, Question, Reply, ReplyArtifacts, Risk, Stream, TokenUsage, ToolError, Truncated, Verdict,
};

/// Something that happened, with its position in the tree agent → turn → call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The time.
    pub time: Timestamp,
    /// The run.
    pub run: String,
    /// The agent's turn, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turn: Option<u64>,
    /// Groups the calls of one task.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trace_id: Option<String>,
    /// The call that it belongs to, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_call_id: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub payload: EventPayload,
}

/// How far an approval extends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    Call,
    /// What the call touches, for the rest of the run.
    Run,
    /// What the call touches, for the rest of the session.
    Session,
    /// What the call touches, in every session of the workspace.
    Always,
}

/// Facts about a run, recorded when it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The workspace's directory.
    pub workspace: String,
    /// The session that the run belongs to.
    pub session: String,
    /// The preset in force.
    pub preset: String,
    /// The front end of the calls: `cli`, `mcp`, `http`, `agent`.
    pub front_end: String,
    /// The program's version.
    pub version: String,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum EventPayload {
    /// A run began.
    #[serde(rename = "run.started")]
    RunStarted(RunFacts),
    /// A run ended.
    #[serde(rename = "run.ended")]
    RunEnded,
    /// A call was accepted. On disk before the call acts.
    #[serde(rename = "tool_call.started")]
    CallStarted {
        /// The tool.
        tool: String,
        /// Its version; none if the tool doesn't exist.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        version: Option<String>,
        /// The arguments, redacted.
        args: Value,
        /// What the call will touch.
        effects: Vec<Effect>,
        /// The verdict; none if the call was rejected before it was judged.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        verdict: Option<Verdict>,
        /// The scope of the approval that it runs under.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        approval: Option<ApprovalScope>,
        /// How much harm the tool can do.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        risk: Option<Risk>,
        /// Why the model makes the call.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        justification: Option<String>,
        /// The client's own tool that the call stands for, where a hook of the client brought it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        hooked: Option<HookedTool>,
    },
    /// The sandbox stopped a call, and it runs once more with the missing rights. On disk before that.
    #[serde(rename = "tool_call.widened")]
    CallWidened {
        /// What the sandbox denied.
        denials: Vec<Denial>,
        /// What the call will touch beyond its stated effects.
        effects: Vec<Effect>,
        /// The verdict on these effects.
        verdict: Verdict,
        /// The scope of the approval that it runs under.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        approval: Option<ApprovalScope>,
    },
    /// A call succeeded.
    #[serde(rename = "tool_call.completed")]
    CallCompleted(CallEnding),
    /// A call failed.
    #[serde(rename = "tool_call.failed")]
    CallFailed {
        /// The error.
        error: ToolError,
        /// The error's class.
        class: ErrorClass,
        /// What is known about the attempt.
        #[serde(flatten)]
        ending: CallEnding,
    },
    /// Files are about to change. On disk before the first one changes, so that the change can be undone.
    #[serde(rename = "files.changing")]
    FilesChanging {
        /// The old and new state of each file.
        changes: Vec<Change>,
        /// Whether the session made them itself, with a tool or with a command whose changes were staged. What a command left in
        /// place may be somebody else's, and what is restored is what was there before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        made: bool,
    },
    /// A person is asked for approval.
    #[serde(rename = "approval_required")]
    ApprovalRequired {
        /// The tool.
        tool: String,
        /// The reason.
        reason: String,
        /// What has to be approved.
        effects: Vec<Effect>,
    },
    /// A person approved the call.
    #[serde(rename = "approval_granted")]
    ApprovalGranted {
        /// How far the approval extends.
        scope: ApprovalScope,
        /// Who approved.
        by: String,
    },
    /// A person denied the call.
    #[serde(rename = "approval_denied")]
    ApprovalDenied {
        /// Who denied.
        by: String,
        /// The person's reason.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<String>,
    },
    /// A person ended the run: its other calls are cancelled, and no more are made.
    #[serde(rename = "run.aborted")]
    RunAborted {
        /// Who ended it.
        by: String,
        /// The person's reason.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<String>,
    },
    /// A front end rejected a request before it became a call.
    #[serde(rename = "request.refused")]
    RequestRefused(RefusedRequest),
    /// A message was shown to the person.
    #[serde(rename = "display")]
    Display(Message),
    /// A process wrote output. Sent only to live listeners and never recorded: the reply and its artifacts are.
    #[serde(rename = "process.output")]
    ProcessOutput(ProcessOutput),
    /// A process that outlived its call has ended.
    #[serde(rename = "process.ended")]
    ProcessEnded {
        /// Its handle.
        process: String,
        /// Its exit code, as a shell would report it.
        exit_code: i64,
        /// Whether it was stopped because of its time limit.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        timed_out: bool,
        /// How long it ran.
        duration_ms: u64,
        /// Its complete output, if that was too long to keep in memory.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        refs: Vec<ArtifactRef>,
    },
    /// A command that was read as one that changes nothing tried to change something. It couldn't. The fault is in how
    /// Toolgate reads commands.
    #[serde(rename = "command.misread")]
    CommandMisread(MisreadCommand),
    /// A person attached a terminal to a process.
    #[serde(rename = "process.attached")]
    ProcessAttached {
        /// Its handle.
        process: String,
        /// Who attached.
        by: String,
    },
    /// A call of a tool that the session's own client registered waits for the client's result.
    #[serde(rename = "client_call.requested")]
    ClientCallRequested {
        /// The tool, as the client named it.
        tool: String,
        /// The arguments, redacted.
        args: Value,
    },
    /// The person is asked a question.
    #[serde(rename = "question_asked")]
    QuestionAsked(Question),
    /// The person answered a question. The answer is in the call's payload.
    #[serde(rename = "question_answered")]
    QuestionAnswered {
        /// Who answered.
        by: String,
    },
    /// An agent started a task. Its events have its id as their trace.
    #[serde(rename = "agent.started")]
    AgentStarted {
        /// Which kind of agent.
        agent: String,
        /// The model it works with.
        model: String,
        /// The task, redacted.
        objective: String,
        /// The call that started it; none for the first agent.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        parent: Option<String>,
        /// The agent of the same run whose conversation it continues.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        continues: Option<String>,
        /// The dialects in which the model is spoken to; none for the native tools.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        dialect: Option<String>,
    },
    /// An agent's work ended.
    #[serde(rename = "agent.ended")]
    AgentEnded {
        /// How it ended.
        finish: FinishReason,
        /// Its final answer, or why there is none, redacted.
        summary: String,
        /// The number of turns.
        turns: u64,
        /// The tokens that it used.
        tokens: TokenUsage,
        /// How long it took.
        duration_ms: u64,
    },
    /// A turn began.
    #[serde(rename = "turn.started")]
    TurnStarted,
    /// A turn ended.
    #[serde(rename = "turn.ended")]
    TurnEnded {
        /// The tokens that the model used in the turn.
        tokens: TokenUsage,
        /// How long it took.
        duration_ms: u64,
    },
    /// The model was told something, after its task and besides the results of its calls.
    #[serde(rename = "model.told")]
    ModelTold {
        /// The message, redacted.
        text: String,
        /// Who told it.
        by: MessageOrigin,
    },
    /// The model answered with text, calls, or both. On disk before its first call starts, so that the conversation can
    /// be rebuilt after a crash.
    #[serde(rename = "model.said")]
    ModelSaid {
        /// The text, redacted.
        text: String,
        /// The calls that it asks for.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        calls: Vec<ModelCall>,
        /// The provider's own form of the answer, where that has to be sent back unchanged.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        raw: Vec<Value>,
    },
    /// The model couldn't answer.
    #[serde(rename = "model.failed")]
    ModelFailed {
        /// The attempt, from 1.
        attempt: u32,
        /// The reason, redacted.
        reason: String,
        /// When the next attempt starts; none if there is none.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        retry_in_ms: Option<u64>,
    },
    /// The model's answer couldn't be parsed, and the model was told so.
    #[serde(rename = "model.misunderstood")]
    ModelMisunderstood {
        /// The reason.
        reason: String,
    },
    /// Old results were removed from the model's context. Each can be read back as an artifact.
    #[serde(rename = "context.masked")]
    ContextMasked {
        /// How many results.
        results: u64,
        /// How many bytes.
        bytes: u64,
        /// Each of them.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        parts: Vec<MaskedPart>,
    },
    /// The oldest part of the conversation was replaced by a summary that the model wrote.
    #[serde(rename = "context.summarized")]
    ContextSummarized {
        /// How many of the oldest entries it replaces.
        entries: u64,
        /// What stands in their place, redacted.
        text: String,
        /// The tokens that the model used for it.
        tokens: TokenUsage,
    },
    /// A damaged end of the journal was moved to another file.
    #[serde(rename = "journal.recovered")]
    JournalRecovered {
        /// How many bytes.
        bytes: u64,
        /// Hash of the moved bytes.
        sha256: String,
        /// The file they were moved to, next to the journal.
        kept_as: String,
    },
}

/// Who tells a model something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageOrigin {
    /// The person, while the agent works.
    Person,
    /// The agent that started this one.
    Agent,
    /// The agent loop: a warning, or a note about what happened.
    Runtime,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The model's own id for it, which is not unique in a run.
    pub id: String,
    /// The id under which it is performed. A call without a `tool_call.started` of this id was never started.
    pub tool_call_id: String,
    /// The tool.
    pub tool: String,
    /// The arguments, redacted.
    pub args: Value,
    /// The provider's kind of call; none for a function.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shape: Option<String>,
}

/// A result, or the arguments of a call, that a model's context no longer contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedPart {
    /// The index of its entry in the conversation.
    pub entry: usize,
    /// Its index in that entry.
    pub item: usize,
    /// The artifact with its text; none for images.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub artifact: Option<String>,
    /// The size of the text.
    pub bytes: u64,
}

/// A piece of a process's output, redacted. Small pieces are collected for a moment and sent as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOutput {
    /// The process's handle.
    pub process: String,
    /// The stream it was written to.
    pub stream: Stream,
    /// What was written.
    pub text: String,
    /// Bytes before it that were skipped because they came too fast.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub skipped: u64,
}

/// A command that was read as one that changes nothing, and tried to change something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MisreadCommand {
    /// The command, redacted.
    pub command: String,
    /// The paths that it tried to change.
    pub paths: Vec<String>,
}

/// A request that a front end rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRequest {
    /// Who rejected it: `http`, `mcp`, or the `gate` itself.
    pub door: String,
    /// The reason, as a code for programs.
    pub code: String,
    /// The request, without anything that could be a secret.
    pub request: String,
    /// Where it came from, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// How many more requests were rejected since the last recorded one; a flood doesn't fill the disk.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub unrecorded: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is known when a call ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallEnding {
    /// How long it took.
    pub duration_ms: u64,
    /// The payload of the reply, redacted and trimmed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub payload: Option<Value>,
    /// The exit code, for commands.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i64>,
    /// Paths that were created, changed or removed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files_changed: Vec<String>,
    /// How many more were changed than are listed.
    #[serde(skip_serializing_if = "crate::staged_changes::is_zero", default)]
    pub more_files_changed: usize,
    /// Directories of build output whose paths aren't listed; `files.changing` has them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub folded: Vec<FoldedDirectory>,
    /// Commands that ran.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands_run: Vec<String>,
    /// The processes of these commands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub processes: Vec<CommandProcess>,
    /// Stored output.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub refs: Vec<ArtifactRef>,
    /// What the sandbox denied.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub denials: Vec<Denial>,
    /// Which guarantees held.
    #[serde(skip_serializing_if = "Enforced::is_empty", default)]
    pub enforced: Enforced,
    /// What was truncated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub truncated: Option<Truncated>,
    /// Whether a secret was replaced.
    pub redacted: bool,
}

/// The process of a command that a call started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandProcess {
    /// Its handle.
    pub process: String,
    /// Its numbers on the machine that it ran on.
    #[serde(flatten)]
    pub pids: Pids,
}

impl CallEnding {
    /// The reply that a recorded call was answered with.
    pub fn into_reply(self, tool_call_id: String, error: Option<ToolError>) -> Reply {
        Reply {
            tool_call_id,
            ok: error.is_none(),
            payload: self.payload,
            error,
            artifacts: ReplyArtifacts {
                files_changed: self.files_changed,
                more_files_changed: self.more_files_changed,
                folded: self.folded,
                commands_run: self.commands_run,
                refs: self.refs,
            },
            enforced: self.enforced,
            truncated: self.truncated,
            redacted: self.redacted,
            duration_ms: self.duration_ms,
        }
    }
}
