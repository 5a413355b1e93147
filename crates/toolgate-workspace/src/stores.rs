//! Where rows and tasks are kept, beside the record itself: in files of the workspace's own, or in a database that many
//! hosts share.

use std::path::PathBuf;
use std::sync::Arc;

use toolgate_config::{Settings, StoreConfig};
use toolgate_journal::{EventStore, Inbox, PostgresStore, StateDirectory};

use crate::error::WorkspaceError;
use crate::location::WorkspaceLocation;

/// Where rows and tasks are kept. Nothing is opened before it is needed.
#[derive(Clone)]
pub struct Stores {
    workspace: PathBuf,
    config: StoreConfig,
}

impl Stores {
    /// Those of this workspace, by these settings.
    pub fn of(location: &WorkspaceLocation, settings: &Settings) -> Self {
        Self { workspace: location.directory.clone(), config: settings.store.clone() }
    }

    /// The store of past runs.
    pub fn store(&self) -> Result<Arc<dyn EventStore>, WorkspaceError> {
        match self.shared()? {
            Some(shared) => Ok(Arc::new(shared)),
            None => Ok(Arc::new(StateDirectory::open(&self.workspace)?.index()?)),
        }
    }

    /// Where tasks wait. In a shared database, those of one workspace aren't another's.
    pub fn inbox(&self) -> Result<Arc<dyn Inbox>, WorkspaceError> {
        match self.shared()? {
            Some(shared) => {
                let queue = self.config.queue.clone().unwrap_or_else(|| self.workspace.display().to_string());
                Ok(Arc::new(shared.with_queue(queue)))
            }
            None => Ok(Arc::new(StateDirectory::open(&self.workspace)?.inbox()?)),
        }
    }

    /// The database that many hosts share, if there is one.
    pub fn shared(&self) -> Result<Option<PostgresStore>, WorkspaceError> {
        self.config.url.as_ref().map(|url| PostgresStore::new(url.reveal())).transpose().map_err(WorkspaceError::Store)
    }

    /// What of the store's address nobody may see: all of it, and its password.
    pub(crate) fn secrets(&self) -> Vec<(String, String)> {
        let address = self.config.url.as_ref().map(|url| ("the store's address".to_owned(), url.reveal().to_owned()));
        let password = self.shared().ok().flatten().and_then(|store| store.password());
        address.into_iter().chain(password.map(|password| ("the store's password".to_owned(), password))).collect()
    }
}
