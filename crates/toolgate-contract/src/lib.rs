//! The words every crate shares: a call, what it touches, how it ends.
//!
//! Nothing here acts. A [`Call`] asks for a [`Tool`]; the tool states its [`Effect`]s; policy turns those into a
//! [`Verdict`]; a cleared tool works with its [`Hands`]; the [`Reply`] tells how it ended, and [`Event`]s keep the
//! record. Every crate may depend on this one, and this one depends on none of ours.

mod agent;
mod apart;
mod artifacts;
mod blob;
mod call;
mod change;
mod clock;
mod decision;
mod effect;
mod error;
mod event;
mod files;
mod hands;
mod hash;
mod lookout;
mod network;
mod notes;
mod person;
mod place;
mod process;
mod process_table;
mod quote;
mod reach;
mod reply;
mod right;
mod skill;
mod spec;
pub mod strict_json;
mod tool;
mod walk;
mod web;

pub use agent::{Agents, Errand, Finish, Sent, Tokens};
pub use apart::{Apart, Differ, Difference, Differences, KeptAside, Rehearsals, Settled, Source};
pub use artifacts::{ArtifactDraft, Artifacts};
pub use blob::Blob;
pub use call::Call;
pub use change::{Change, Changes, Content, Edit, FOLDER_MODE, FileState, LINK_MODE, PIPE_MODE, Seen};
pub use clock::{Clock, SystemClock};
pub use decision::{Decision, Finding, Layer, RuleName, Verdict};
pub use effect::{Access, Effect, Permission};
pub use error::{ErrorClass, ErrorCode, ToolError};
pub use event::{Ending, Event, Happening, ProcessOutput, Refusal, RunFacts, Scope};
pub use files::{Entry, EntryKind, Files, First, Looked, Mark, Node, Opened, Veil};
pub use hands::{Hands, Means, Tally};
pub use hash::{hex, sha256, sha256_of};
pub use lookout::{Lookout, OutOfBounds};
pub use network::{Border, Denial};
pub use notes::{Book, Notes, Rewrite};
pub use person::{Answered, Choice, Inquiry, Level, Message, Person};
pub use place::{Located, Place, STATE_FOLDER};
pub use process::{
    Controls, Landing, Order, Output, Process, Processes, Program, Signal, Stream, Streams, TerminalSize,
};
pub use process_table::{
    Attached, End, Missing, ProcessFacts, ProcessTable, Progress, Screen, SessionProcess, Stopped, Whole,
};
pub use quote::quoted;
pub use reply::{ArtifactRef, Artifacts as ReplyArtifacts, Enforced, Guarantee, Holding, Reply, Truncated};
pub use right::Right;
pub use skill::{AllowedTools, Script, Shelf, SkillFolder, Skills};
pub use spec::{Declaration, Form, Risk, SideEffect, Spec};
pub use tool::{Adapter, AnyTool, BoxFuture, Prepared, Preview, Tool, erase};
pub use walk::{Facts, Handle, LeftOut, Step, Visitor, Visitors, WalkOptions, Walked};
pub use web::{Web, WebRequest, WebResponse};

/// Re-exported so that a tool needs no dependency of its own to derive its schemas.
pub use schemars;
/// Re-exported: every call can be cancelled through one of these.
pub use tokio_util::sync::CancellationToken;
