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
mod error;
mod fault;
mod folder;
mod grant;
mod head;
mod hex;
mod indexer;
mod journal;
#[cfg(feature = "postgres")]
mod postgres;
mod quarantine;
mod reading;
mod rows;
mod seal;
mod sqlite;
mod state;
mod statements;
mod store;
mod tree;
mod verify;

pub use artifact::{ArtifactStore, ArtifactWriter};
pub use changing::{ChangeNote, Changing};
pub use content::Contents;
pub use error::JournalError;
pub use fault::Fault;
pub use grant::{Grant, Grants, LoadedGrants};
pub use indexer::{Indexer, catch_up, reindex};
pub use journal::{Durability, Journal};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use quarantine::{Held, Quarantine, Room};
pub use reading::{Events, Recorded, list_runs, read_events};
pub use seal::{SealKey, seal_key};
pub use sqlite::SqliteStore;
pub use state::{Run, RunOptions, State};
pub use store::{CallRow, RunFilter, RunRow, Store};
pub use tree::{Approval, CallNode, Status, Tree, Turn, tree};
pub use verify::{Verification, verify};
