//! Keeps what happened: events, artifacts, grants.
//!
//! A [`State`] is the `.toolgate` folder of one workspace. Each [`Run`] in it has a [`Journal`], a chained file of
//! events that is the truth; artifacts; and the grants that people gave. A [`Store`] holds the same events as rows for
//! queries: it is a view, filled in the background by an [`Indexer`], and can be rebuilt from the files at any time.

// One of the two crates that may touch the disk: whatever the runtime itself keeps is kept here.
#![allow(clippy::disallowed_methods)]

mod artifact;
mod chain;
mod changing;
mod content;
mod desk;
mod error;
mod export;
mod fault;
mod folder;
mod follow;
mod grant;
mod head;
mod hex;
mod inbox;
mod inbox_rows;
mod indexer;
mod journal;
mod notebook;
#[cfg(feature = "postgres")]
mod postgres;
mod quarantine;
mod reading;
mod rows;
mod seal;
mod snapshot;
mod sqlite;
mod sqlite_inbox;
mod state;
mod statements;
mod store;
mod token;
mod tree;
mod verify;

pub use artifact::{ArtifactStore, ArtifactWriter};
pub use changing::{ChangeNote, Changing};
pub use content::Contents;
pub use desk::{ApprovalDesk, Ask, DeskAnswer, Waiting};
pub use error::JournalError;
pub use export::export;
pub use fault::Fault;
pub use follow::Follower;
pub use grant::{Grant, Grants, LoadedGrants};
pub use inbox::{Inbox, Lease, NewTask, Task, TaskState};
pub use indexer::{Indexer, catch_up, reindex};
pub use journal::{Durability, Journal};
pub use notebook::Notebook;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use quarantine::{Hand, Held, Quarantine, Room};
pub use reading::{Events, Recorded, list_runs, read_events};
pub use seal::{SealKey, seal_key};
pub use snapshot::{Abandoned, Scope, Snapshot, Snapshots};
pub use sqlite::SqliteStore;
pub use sqlite_inbox::SqliteInbox;
pub use state::{Run, RunOptions, State};
pub use store::{CallRow, RunFilter, RunRow, Store};
pub use token::{fresh_token, token_at};
pub use tree::{AgentNode, Approval, CallNode, Status, Tree, Turn, read_tree, tree};
pub use verify::{Verification, verify};
