//! Everything that changes a workspace goes through here, and everything can be undone.
//!
//! A tool's edits and a command's staged changes are compared with the existing content, judged, stored together with
//! the previous content, recorded, and then renamed into place as one change. What policy blocks, or what another
//! program would run or load automatically, is quarantined. A command that works in place begins with a snapshot, so
//! that its changes are known too.

mod build_output;
mod change_applier;
mod change_log;
mod commit;
mod entrusted;
mod git;
mod in_place_command;
mod own_files;
mod read_tracker;
mod recover;
mod release;
mod restore_tool;
mod revert;
mod settle;
mod snapshot;
mod undo;
mod undo_history;
mod unfinished_change;
mod workspace_changes;

pub use build_output::{FoldedChanges, fold_build_output};
pub use change_applier::ChangeApplier;
pub use change_log::ChangeLog;
pub use entrusted::EntrustedCall;
pub use git::CommittedView;
pub use in_place_command::InPlaceCommand;
pub use release::Release;
pub use settle::ChangeSettler;
pub use undo::Undo;
pub use undo_history::UndoHistory;
pub use workspace_changes::{ChangeOptions, WorkspaceChanges};
