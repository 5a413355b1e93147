//! The one path that every call takes, whoever asked.
//!
//! [`Gate::perform`] is the table of contents: find, validate, effects, judge, approve, record, lock, run, redact,
//! trim, record. A front end brings a [`Session`] with its [`Approver`] and [`EventSink`]; nothing else leads to a
//! tool, because a runnable call is a [`Cleared`] and only the gate makes one.

mod approval;
mod call_registry;
mod client_tools;
mod gate;
mod grant_view;
mod grants;
mod hidden_hard_links;
mod hidden_path_scanner;
mod locks;
mod nearest;
mod principal;
mod processes;
mod question;
mod registry;
mod registry_history;
mod replay;
mod server_lists;
mod servers;
mod session;
mod skills;
mod step_timings;
mod tool_version;
pub mod trim;
mod validate;
mod workspace_facts;

pub use toolgate_policy::{Ceiling, PathBounds};

pub use approval::{
    ApprovalAnswer, ApprovalOption, ApprovalQueueClient, ApprovalRequest, Approver, NobodyToAsk, QueueItem,
    QueuedQuestion,
};
pub use call_registry::{CallRegistry, CallRegistryError, RegisteredCall};
pub use client_tools::{CallAnnouncer, ClientToolCall, ClientToolDefinition, ClientTools};
pub use gate::{AgentNotes, CallEgress, Cleared, ClientEnding, Gate, GateParts, Judgement, ToolServers};
pub use grant_view::GrantView;
pub use hidden_path_scanner::HiddenPathScanner;
pub use principal::{Principal, PrincipalSession};
pub use processes::{
    ProcessFollower, ProcessRegistries, ProcessRegistry, ProcessView, ScreenCells, SessionProcess, StyledRun,
};
pub use question::{NobodyAnswers, QuestionAnswerer};
pub use registry::{Registry, RegistryError};
pub use replay::{Replay, quoted};
pub use server_lists::ServerListChange;
pub use servers::SessionServers;
pub use session::{EventSink, NobodyWatches, Session};
pub use skills::SkillDirectory;
pub use step_timings::StepTimings;
pub use workspace_facts::ContentHiddenPaths;
