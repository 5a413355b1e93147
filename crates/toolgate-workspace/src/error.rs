//! Why a workspace can't be opened.

use std::io;
use std::path::PathBuf;

use toolgate_config::{ConfigError, ConfigFileError};
use toolgate_contract::{ErrorCode, ToolError};
use toolgate_journal::JournalError;
use toolgate_runtime::RegistryError;
use toolgate_sandbox::RootsError;

/// Why a workspace, or something of it, can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is no such directory, or it can't be entered.
    #[error("the workspace {} can't be opened", .0.display())]
    Directory(PathBuf, #[source] io::Error),
    /// A file of the configuration can't be read.
    #[error(transparent)]
    ConfigFile(#[from] ConfigFileError),
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The workspace's state directory can't be opened.
    #[error("the workspace's record can't be opened")]
    Record(#[source] JournalError),
    /// A run, a session or an approval can't be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The shared store can't be used.
    #[error("The store that `store.url` or TOOLGATE_STORE names can't be used")]
    Store(#[source] JournalError),
    /// The key that signs journals can't be used.
    #[error("the signing key {} can't be used", .0.display())]
    SigningKey(PathBuf, #[source] io::Error),
    /// A root directory can't be opened.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// Two tools have the same name, or one has no valid schema.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// What a killed program left can't be settled, or the directory of changes can't be opened.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

impl From<WorkspaceError> for ToolError {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Tool(error) => error,
            WorkspaceError::Journal(error) | WorkspaceError::Record(error) => error.into(),
            error => {
                let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
                let causes: Vec<String> = causes.map(ToString::to_string).collect();
                Self::new(ErrorCode::IoError, format!("{}.", causes.join(": ").trim_end_matches('.')))
                    .with_hint("Ask the person to run `toolgate doctor` in the workspace.")
            }
        }
    }
}
