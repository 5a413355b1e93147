//! Where rows and tasks are kept, beside the record itself: in files of the workspace's own, or in a database that many
//! hosts share.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use toolgate_config::{Settings, StoreConfig};
use toolgate_journal::{EventStore, Inbox, PostgresStore, StateDirectory};

use crate::wiring::WorkspaceLocation;

/// Where rows and tasks are kept. Nothing is opened before it is needed.
#[derive(Clone)]
pub(crate) struct Stores {
    workspace: PathBuf,
    config: StoreConfig,
}

impl Stores {
    /// Those of this place, by these settings.
    pub(crate) fn of(place: &WorkspaceLocation, settings: &Settings) -> Self {
        Self { workspace: place.workspace.clone(), config: settings.store.clone() }
    }

    /// The store of past runs.
    pub(crate) fn store(&self) -> Result<Arc<dyn EventStore>> {
        match shared(&self.config)? {
            Some(shared) => Ok(Arc::new(shared)),
            None => Ok(Arc::new(StateDirectory::open(&self.workspace)?.index()?)),
        }
    }

    /// Where tasks wait. In a shared database, those of one workspace aren't another's.
    pub(crate) fn inbox(&self) -> Result<Arc<dyn Inbox>> {
        match shared(&self.config)? {
            Some(shared) => {
                let queue = self.config.queue.clone().unwrap_or_else(|| self.workspace.display().to_string());
                Ok(Arc::new(shared.with_queue(queue)))
            }
            None => Ok(Arc::new(StateDirectory::open(&self.workspace)?.inbox()?)),
        }
    }
}

/// The database that many hosts share, if there is one.
pub(crate) fn shared(config: &StoreConfig) -> Result<Option<PostgresStore>> {
    let store = config.url.as_ref().map(|url| PostgresStore::new(url.reveal())).transpose();
    store.context("The store that `store.url` or TOOLGATE_STORE names can't be used")
}

/// What of the store's address nobody may see: all of it, and its password.
pub(crate) fn secrets(config: &StoreConfig) -> Vec<(String, String)> {
    let address = config.url.as_ref().map(|url| ("the store's address".to_owned(), url.reveal().to_owned()));
    let password = shared(config).ok().flatten().and_then(|store| store.password());
    address.into_iter().chain(password.map(|password| ("the store's password".to_owned(), password))).collect()
}
