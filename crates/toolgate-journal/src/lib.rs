//! Persistent records: events, artifacts, approvals, snapshots and quarantined changes.
//!
//! A [`StateDirectory`] is the `.toolgate` directory of one workspace. Each [`Run`] in it has a [`Journal`] (a
//! hash-chained file of events, which is the source of truth), artifacts, and the grants that people gave. An
//! [`EventStore`] holds the same events as database rows for queries. An [`Indexer`] fills the store in the background,
//! and the store can be rebuilt from the files at any time.

// One of the two crates that may use the file system directly: all files of the runtime itself are written here.
#![allow(clippy::disallowed_methods)]

mod approval_queue;
mod artifact;
mod blob_store;
mod chain;
mod change_lock;
mod console_access;
mod directory;
mod error;
mod event_reader;
mod export;
mod fault;
mod follow;
mod grant;
mod grant_store;
mod head;
mod hex;
mod hook_store;
mod inbox;
mod indexer;
mod journal;
mod pin_store;
#[cfg(feature = "postgres")]
mod postgres;
mod quarantine;
mod rows;
mod run_list;
mod run_recorder;
mod run_tree;
mod search_store;
mod session_notes;
mod signed_file;
mod signing_key;
mod skill_limits;
mod snapshot_store;
mod sqlite;
mod sqlite_inbox;
mod state_directory;
mod statements;
mod store;
mod task_table;
mod token;
mod verify;
mod workspace_identity;

pub use approval_queue::{ApprovalQueue, QueueEntry, QueueTicket, QueuedAnswer};
pub use artifact::{ArtifactStore, ArtifactWriter};
pub use blob_store::BlobStore;
pub use change_lock::{ChangeIntent, ChangeLock};
pub use console_access::{AnnouncedServer, ConsoleAccess, ConsoleTicket, ServerAddress};
pub use error::JournalError;
pub use event_reader::{EventReader, RecordedEvent, list_runs, newest_runs, read_events, run_directories};
pub use export::export;
pub use fault::JournalFault;
pub use follow::Follower;
pub use grant::{Grant, GrantFile, LoadedGrants, Revocation, WorkspaceIdentity};
pub use grant_store::GrantStore;
pub use hook_store::{HookRecord, HookStore};
pub use inbox::{HeldLease, Inbox, InvalidReplyAddress, Lease, NewTask, ReplyAddress, Task, TaskState};
pub use indexer::{Indexer, catch_up, reindex};
pub use journal::Journal;
pub use pin_store::{PinLock, PinStore};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use quarantine::{CallQuarantine, PlaceFile, Quarantine, QuarantinedChange};
pub use run_list::{ListedRun, RunList, RunListCheck, RunListFault};
pub use run_recorder::{Recorder, RunRecorder};
pub use run_tree::{AgentNode, Approval, CallNode, CallStatus, RunTree, TurnNode, read_tree, tree};
pub use search_store::{PartVersion, SearchLock, SearchStore, StoredPart};
pub use session_notes::SessionNotes;
pub use signing_key::{SigningKey, load_or_create_signing_key};
pub use skill_limits::{SkillLimit, SkillLimits};
pub use snapshot_store::{ChangeNotice, ClockEpoch, FilesystemTime, NoticeKind, SnapshotStore, StoredSnapshot};
pub use sqlite::SqliteStore;
pub use sqlite_inbox::SqliteInbox;
pub use state_directory::{Run, RunHold, RunOptions, StateDirectory};
pub use store::{CallFilter, CallRow, EventStore, IndexedPart, RunFilter, RunOutcome, RunRow};
pub use token::{load_or_create_token, new_token};
pub use verify::{Verification, verify, verify_listed};
