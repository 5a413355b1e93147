//! The types that all crates share: a call, what it touches, how it ends.
//!
//! Nothing here acts. A [`Call`] names a [`Tool`]; the tool states its [`Effect`]s; policy turns those into a
//! [`Verdict`]; a cleared tool works with its [`Hands`]; the [`Reply`] says how it ended, and [`Event`]s record it.
//! Every crate may depend on this one, and this one depends on no other crate of the workspace.

mod agent;
mod artifacts;
mod blob;
mod call;
mod change;
mod clock;
mod code;
mod counted;
mod decision;
mod denied_access;
mod durability;
mod effect;
mod effect_bindings;
mod egress;
mod error;
mod event;
mod event_origin;
mod file_name;
mod file_uri;
mod files;
mod hands;
mod hash;
mod launch_spec;
mod notes;
mod person;
mod process;
mod process_table;
mod quarantine_mode;
mod quote;
mod reply;
mod right;
mod root_access;
mod search_index;
mod skill;
mod spec;
mod staged_changes;
mod tier;
mod tool;
mod tool_server;
mod tree_walk;
mod web;
mod workspace_path;

pub use agent::{Agents, FinishReason, SubagentStatus, SubagentTask, TokenUsage};
pub use artifacts::{ArtifactDraft, Artifacts};
pub use blob::Blob;
pub use call::{Call, HookedTool, MCP_READ, MCP_RESOURCES, TOOLS_FIND, TOOLS_USE};
pub use change::{
    Change, Changes, DIRECTORY_MODE, FileAttributes, FileContent, FileEdit, FileOwner, FileState, LINK_MODE, PIPE_MODE,
    SeenVersion,
};
pub use clock::{Clock, SystemClock};
pub use code::{
    CallDirection, ChangedSource, CodeAnswer, CodeCall, CodeDiagnostic, CodeFindings, CodeIntelligence, CodePlace,
    CodeQuestion, CodeSeverity, CodeSymbol, CodeTarget, Connect, DefinitionKind, DiagnosticsMark, FinishedProgram,
    ServerHost, ServerReport, ServerStatus,
};
pub use counted::{counted, noun};
pub use decision::{Decision, Finding, Layer, NamedChanges, RemoteUrl, RuleName, Verdict};
pub use denied_access::DeniedAccess;
pub use durability::Durability;
pub use effect::{Access, Effect, Permission};
pub use effect_bindings::EffectBindings;
pub use egress::{Denial, EgressPolicy};
pub use error::{ErrorClass, ErrorCode, ToolError};
pub use event::{
    ApprovalScope, CallEnding, CommandProcess, Event, EventPayload, MaskedPart, MessageOrigin, MisreadCommand,
    ModelCall, ProcessOutput, RefusedRequest, RunFacts,
};
pub use event_origin::EventOrigin;
pub use file_name::{escape_path, unescape_path};
pub use file_uri::{file_uri, file_uri_path};
pub use files::{
    BeforeApply, ChangedDirectories, DirectoryEntry, DirectoryScan, DirectoryStamp, EntryKind, EntryStatus,
    FileMetadata, Files, HiddenPaths, OpenFile, TreeWatch, WatchedChanges,
};
pub use hands::{BlockingWork, FileHands, Hands, ProcessHands};
pub use hash::{hex, sha256, sha256_of};
pub use launch_spec::{
    ApplyMode, DECOY_CONTENT, LaunchSpec, NetworkAccess, RestrictedPaths, StartDirectory, Streams, Substitute,
    TerminalSize,
};
pub use notes::{NoteKind, NoteUpdate, Notes};
pub use person::{Choice, Message, MessageLevel, Person, Question, QuestionAnswer, QuestionOutcome};
pub use process::{ChildProcess, Output, Pids, ProcessLauncher, Signal, Stream, reported_denials};
pub use process_table::{
    OmittedText, ProcessExit, ProcessFacts, ProcessGuard, ProcessHandle, ProcessProgress, ProcessTable, Screen,
    StopReason, StreamText,
};
pub use quarantine_mode::QuarantineMode;
pub use quote::quoted;
pub use reply::{ArtifactRef, Enforced, Guarantee, GuaranteeLevel, Reply, ReplyArtifacts, Truncated};
pub use right::Right;
pub use root_access::RootAccess;
pub use search_index::{AlsoFound, SearchAnswer, SearchCoverage, SearchHit, SearchIndex, SearchKind, SearchQuestion};
pub use skill::{AllowedTools, SkillCandidate, SkillOrigin, SkillOwner, SkillScript, Skills};
pub use spec::{ArgumentFormat, Declaration, ResultForm, Risk, SideEffect, Spec};
pub use staged_changes::{
    ChangeSource, Differ, Difference, Differences, FoldedDirectory, PlaceContent, QuarantinedPath, Rehearsals,
    SettledChanges, StagedChanges, UnreadableChange,
};
pub use tier::Tier;
pub use tool::{AnyTool, BoxFuture, PreparedCall, Preview, Tool, VersionAdapter, erase, payload_schema};
pub use tool_server::{
    ApprovedDefinition, ResourceRequest, SERVER_LINK, ServerCall, ServerChannel, ServerConnection, ServerDescription,
    ServerLifetime, ServerListener, ServerLocation, ServerReply, ToolServer,
};
pub use tree_walk::{
    EntryMetadata, SkipReason, VisitedEntry, Visitor, VisitorFactory, WalkHandle, WalkOptions, WalkStep,
};
pub use web::{ResponseBody, StreamedResponse, Web, WebRequest, WebResponse};
pub use workspace_path::{LocatedEffect, STATE_DIRECTORY, WorkspacePath};

/// Re-exported so that a tool needs no dependency of its own to derive its schemas.
pub use schemars;
/// Re-exported: every call can be cancelled through one of these.
pub use tokio_util::sync::CancellationToken;
