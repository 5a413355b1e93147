//! One line of what happened. The journal keeps these; the tree of a run is rebuilt from them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ArtifactRef, Change, Denial, Effect, Enforced, ErrorClass, FinishReason, Message, Question, Risk, Stream,
    TokenUsage, ToolError, Truncated, Verdict,
};

/// Something that happened, with where it belongs in the tree agent → turn → call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub time: Timestamp,
    /// The run.
    pub run: String,
    /// The turn of the agent, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turn: Option<u64>,
    /// Ties together the calls of one piece of work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trace_id: Option<String>,
    /// The call, for whatever belongs to one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_call_id: Option<String>,
    /// What.
    #[serde(flatten)]
    pub payload: EventPayload,
}

/// How far an approval reaches (C-18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    Call,
    /// What it touches, for the rest of the run.
    Run,
    /// What it touches, for the rest of the session.
    Session,
    /// From now on: a rule in the user's configuration.
    Always,
}

/// What a run is about, said when it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The workspace's directory.
    pub workspace: String,
    /// The session that the run belongs to.
    pub session: String,
    /// The preset in force.
    pub preset: String,
    /// Who brought the calls: `cli`, `mcp`, `http`, `agent`.
    pub front_end: String,
    /// The program's version.
    pub version: String,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum EventPayload {
    /// A run began.
    #[serde(rename = "run.started")]
    RunStarted(RunFacts),
    /// A run ended.
    #[serde(rename = "run.ended")]
    RunEnded,
    /// A call was taken up. On disk before the call acts.
    #[serde(rename = "tool_call.started")]
    CallStarted {
        /// The tool.
        tool: String,
        /// Its version; none when there is no such tool.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        version: Option<String>,
        /// The arguments, redacted.
        args: Value,
        /// What it will touch.
        effects: Vec<Effect>,
        /// How it was judged; none when it was refused before that.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        verdict: Option<Verdict>,
        /// The scope of the approval it runs under.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        approval: Option<ApprovalScope>,
        /// How much harm the tool can do.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        risk: Option<Risk>,
        /// Why the model wants this.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        justification: Option<String>,
    },
    /// Confinement stopped a call, and it is tried once more with what was missing. On disk before that.
    #[serde(rename = "tool_call.widened")]
    CallWidened {
        /// What stopped it.
        denials: Vec<Denial>,
        /// What it will touch beyond what it stated.
        effects: Vec<Effect>,
        /// How that was judged.
        verdict: Verdict,
        /// The scope of the approval it runs under.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        approval: Option<ApprovalScope>,
    },
    /// A call worked.
    #[serde(rename = "tool_call.completed")]
    CallCompleted(CallEnding),
    /// A call failed.
    #[serde(rename = "tool_call.failed")]
    CallFailed {
        /// How.
        error: ToolError,
        /// Its class.
        class: ErrorClass,
        /// What is known of the attempt.
        #[serde(flatten)]
        ending: CallEnding,
    },
    /// Files are about to change. On disk before the first of them does, so that it can be taken back.
    #[serde(rename = "files.changing")]
    FilesChanging {
        /// Each file's before and after.
        changes: Vec<Change>,
    },
    /// A person is being asked.
    #[serde(rename = "approval_required")]
    ApprovalRequired {
        /// The tool.
        tool: String,
        /// Why.
        reason: String,
        /// What has to be approved.
        effects: Vec<Effect>,
    },
    /// A person said yes.
    #[serde(rename = "approval_granted")]
    ApprovalGranted {
        /// How far it reaches.
        scope: ApprovalScope,
        /// Who.
        by: String,
    },
    /// A person said no.
    #[serde(rename = "approval_denied")]
    ApprovalDenied {
        /// Who.
        by: String,
        /// Their words.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<String>,
    },
    /// A front door turned a request away before it became a call.
    #[serde(rename = "request.refused")]
    RequestRefused(RefusedRequest),
    /// Something was said to the person.
    #[serde(rename = "display")]
    Display(Message),
    /// A process wrote something. Passes by whoever watches and is never on record: the reply and its artifacts are.
    #[serde(rename = "process.output")]
    ProcessOutput(ProcessOutput),
    /// A process that went on after its call has ended.
    #[serde(rename = "process.ended")]
    ProcessEnded {
        /// Its handle.
        process: String,
        /// Its code, as a shell would give it.
        exit_code: i64,
        /// Whether it was stopped because its time was up.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        timed_out: bool,
        /// How long it ran.
        duration_ms: u64,
        /// All of its output, where that was too much to keep at hand.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        refs: Vec<ArtifactRef>,
    },
    /// A person took hold of a process from a terminal.
    #[serde(rename = "process.attached")]
    ProcessAttached {
        /// Its handle.
        process: String,
        /// Who.
        by: String,
    },
    /// The person is asked something.
    #[serde(rename = "question_asked")]
    QuestionAsked(Question),
    /// The person answered. What they said is in the call's payload.
    #[serde(rename = "question_answered")]
    QuestionAnswered {
        /// Who.
        by: String,
    },
    /// An agent took up a task. Its events carry its id as their trace.
    #[serde(rename = "agent.started")]
    AgentStarted {
        /// Which kind of agent.
        agent: String,
        /// The model it works with.
        model: String,
        /// What it should achieve, redacted.
        objective: String,
        /// The call that set it to work; none for the first.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        parent: Option<String>,
    },
    /// An agent's work ended.
    #[serde(rename = "agent.ended")]
    AgentEnded {
        /// How.
        finish: FinishReason,
        /// Its final answer, or why there is none, redacted.
        summary: String,
        /// How many turns it took.
        turns: u64,
        /// What it used.
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
        /// What the model used in it.
        tokens: TokenUsage,
        /// How long it took.
        duration_ms: u64,
    },
    /// The model said something, beside its calls or as its final answer.
    #[serde(rename = "model.said")]
    ModelSaid {
        /// Its words, redacted.
        text: String,
    },
    /// The model couldn't answer.
    #[serde(rename = "model.failed")]
    ModelFailed {
        /// Which try it was, from 1.
        attempt: u32,
        /// Why, redacted.
        reason: String,
        /// When it is tried again; none when it isn't.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        retry_in_ms: Option<u64>,
    },
    /// The model's answer couldn't be understood, and it was told so.
    #[serde(rename = "model.misunderstood")]
    ModelMisunderstood {
        /// Why.
        reason: String,
    },
    /// Old results were taken out of what the model is shown. Each can be read back as an artifact.
    #[serde(rename = "context.masked")]
    ContextMasked {
        /// How many results.
        results: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// A damaged end of the journal was set aside.
    #[serde(rename = "journal.recovered")]
    JournalRecovered {
        /// How many bytes.
        bytes: u64,
        /// Hash of the bytes that were set aside.
        sha256: String,
        /// The file they were moved to, beside the journal.
        kept_as: String,
    },
}

/// A piece of a process' output, redacted. Pieces are held together for a moment, so that many small ones pass as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOutput {
    /// The process' handle.
    pub process: String,
    /// Where it was written.
    pub stream: Stream,
    /// What was written.
    pub text: String,
    /// Bytes before it that came too fast to be shown.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub skipped: u64,
}

/// A request that a front door turned away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRequest {
    /// The door: `http`, `mcp`.
    pub door: String,
    /// Why, as a word for programs.
    pub code: String,
    /// What was asked for, without anything that could be a secret.
    pub request: String,
    /// Where it came from, as far as that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// How many more were turned away since the last one that was written down; a flood doesn't fill the disk.
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
    /// The payload as it was answered: redacted and trimmed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub payload: Option<Value>,
    /// The exit code, for commands.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i64>,
    /// Paths that were created, changed or removed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files_changed: Vec<String>,
    /// Commands that ran.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands_run: Vec<String>,
    /// Stored output.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub refs: Vec<ArtifactRef>,
    /// What confinement kept from it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub denials: Vec<Denial>,
    /// Which guarantees held.
    #[serde(skip_serializing_if = "Enforced::is_empty", default)]
    pub enforced: Enforced,
    /// What was cut.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub truncated: Option<Truncated>,
    /// Whether a secret was replaced.
    pub redacted: bool,
}
