//! Errors of the record. Each message names the thing, the reason and what to do next.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use toolgate_contract::{ErrorCode, ToolError};

use crate::JournalFault;

/// Why something couldn't be stored or read back.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Something that must be a real file or directory is a symbolic link.
    #[error("`{}` is a symbolic link, and the record is never written through one. Remove the link and try again.", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Something of another kind is where a file or directory belongs.
    #[error("`{}` is not a {wanted}. Move it out of the way and try again.", path.display())]
    WrongKind {
        /// What is in the way.
        path: PathBuf,
        /// What belongs there.
        wanted: &'static str,
    },
    /// An id that can't be the name of a directory.
    #[error("`{id}` can't be the id of a {of}. Use 1 to 64 letters, digits, `_` or `-`.")]
    BadId {
        /// What it should name.
        of: &'static str,
        /// The id.
        id: String,
    },
    /// There is no such run.
    #[error("There is no run `{run}` here. `toolgate runs list` shows those that exist.")]
    NoSuchRun {
        /// The run.
        run: String,
    },
    /// A run with this id exists already.
    #[error("The run `{run}` exists already. Open it, or begin a run under a fresh id.")]
    RunExists {
        /// The run.
        run: String,
    },
    /// An agent of another process works in this run.
    #[error(
        "The run `{run}` can't be continued now: another process works in it. Wait for its end or stop it, or follow it with `toolgate runs tail -f {run}`."
    )]
    RunInUse {
        /// The run.
        run: String,
    },
    /// No approval request with this id is waiting.
    #[error(
        "No approval request `{id}` is waiting. It may have been answered or withdrawn; `toolgate approvals` lists the waiting ones."
    )]
    NoSuchAsk {
        /// The id of the request.
        id: String,
    },
    /// The request has been answered by another person or process.
    #[error("`{id}` has been answered already, and only the first answer counts.")]
    Answered {
        /// The id of the request.
        id: String,
    },
    /// The journal isn't what was written; continuing would hide the evidence.
    #[error(
        "The journal of run `{run}` is damaged, so nothing is added to it. {fault} Keep its directory for inspection and begin a new run."
    )]
    Damaged {
        /// The run.
        run: String,
        /// What is wrong with it.
        fault: JournalFault,
    },
    /// The journal is signed and there is no key.
    #[error("The journal of run `{run}` is signed. Open it with the key that signed it, or begin a new run.")]
    KeyNeeded {
        /// The run.
        run: String,
    },
    /// The operating system refused.
    #[error("{what}: {source}.")]
    Io {
        /// What was attempted.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A value can't be serialized to JSON.
    #[error("A line couldn't be written as JSON: {0}.")]
    Encode(#[source] serde_json::Error),
    /// The database that hosts share can't be connected to, or the connection was lost. Trying again later may help.
    #[error(
        "The database {database} isn't available: {source}. Check that it runs and that `store.url` is right; `toolgate doctor` tries the connection."
    )]
    Unavailable {
        /// Where it is, without the password.
        database: String,
        /// Why it isn't available.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store failed. The journal is intact.
    #[error("The store failed: {0}. The journal is intact, and the store can be rebuilt from it.")]
    Store(#[source] Box<dyn Error + Send + Sync>),
}

impl JournalError {
    /// An error of the operating system during `what`.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

impl From<JournalError> for ToolError {
    fn from(error: JournalError) -> Self {
        let code = match &error {
            JournalError::BadId { .. } => ErrorCode::InvalidArgs,
            JournalError::NoSuchRun { .. } | JournalError::NoSuchAsk { .. } => ErrorCode::NotFound,
            JournalError::Encode(_) => ErrorCode::Internal,
            _ => ErrorCode::IoError,
        };
        Self::new(code, error.to_string())
            .with_hint("Ask the person to check the workspace's `.toolgate` directory; `toolgate doctor` helps.")
    }
}
