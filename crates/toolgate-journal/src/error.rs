//! What can go wrong with the record, said so that a person knows the thing, the reason and the way on.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use toolgate_contract::{ErrorCode, ToolError};

use crate::JournalFault;

/// Why something couldn't be kept or read back.
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
    /// The id is taken.
    #[error("The run `{run}` exists already. Open it, or begin a run under a fresh id.")]
    RunExists {
        /// The run.
        run: String,
    },
    /// Nothing of that id waits for an answer.
    #[error(
        "Nothing waits for an answer under `{id}`. It may have been answered or withdrawn; `toolgate approvals` shows what waits."
    )]
    NoSuchAsk {
        /// The ask.
        id: String,
    },
    /// Somebody was quicker.
    #[error("`{id}` has been answered already, and the first answer counts.")]
    Answered {
        /// The ask.
        id: String,
    },
    /// The journal isn't what it was; going on would bury the evidence.
    #[error(
        "The journal of run `{run}` is damaged, so nothing is added to it. {fault} Keep its directory as it is and begin a new run."
    )]
    Damaged {
        /// The run.
        run: String,
        /// What is wrong with it.
        fault: JournalFault,
    },
    /// The journal is sealed and nobody brought the key.
    #[error("The journal of run `{run}` is sealed. Open it with the key that it was begun with, or begin a new run.")]
    KeyNeeded {
        /// The run.
        run: String,
    },
    /// The operating system refused.
    #[error("{what}: {source}.")]
    Io {
        /// What was being done.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Something can't be put into JSON.
    #[error("A line couldn't be written as JSON: {0}.")]
    Encode(#[source] serde_json::Error),
    /// The store failed. The journal is unharmed.
    #[error("The store failed: {0}. The journal is unharmed, and the store can be rebuilt from it.")]
    Store(#[source] Box<dyn Error + Send + Sync>),
}

impl JournalError {
    /// The operating system refused `what`.
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
            .with_hint("Ask the person to look at the workspace's `.toolgate` directory; `toolgate doctor` helps.")
    }
}
