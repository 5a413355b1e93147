//! Opens one workspace: configuration becomes policy, sandbox, journal and gate, wired in one place for every front end
//! and for tests.
//!
//! A [`WorkspaceLocation`] says where the workspace is and by which rules; [`Workspace::open`] makes everything that a call
//! needs; [`Workspace::begin`] gives a client its session and the run that it is recorded in.

mod change_diff;
mod configured_tools;
mod dialect_session;
mod error;
mod language_servers;
mod live_events;
mod live_sockets;
mod location;
mod mcp_servers;
mod options;
mod recorded_session;
mod sandbox_profile;
mod server_code;
mod server_files;
mod server_tokens;
mod skill_directories;
mod stores;
mod workspace;

pub use change_diff::ChangeDiff;
pub use dialect_session::{CallCheck, DialectReply, DialectSession};
pub use error::WorkspaceError;
pub use language_servers::language_servers;
pub use live_events::{LiveEventReceiver, LiveEvents};
pub use live_sockets::{LiveListener, LiveSockets, SentEvent};
pub use location::WorkspaceLocation;
pub use mcp_servers::pin_name;
pub use options::{WarningSink, WorkspaceOptions};
pub use recorded_session::{RecordedSession, RunChoice};
pub use sandbox_profile::{create_private_directory, root_directories, sandbox_profile, sandboxed_processes};
pub use server_tokens::ServerTokens;
pub use skill_directories::SKILL_DIRECTORIES;
pub use stores::Stores;
pub use workspace::{FULL_WARNING, Workspace};
