//! Where a workspace is, and by which rules tools work in it.

use std::path::{Path, PathBuf};

use toolgate_config::{Config, ConfigFileError, ConfigLayer, ConfigPaths, FlagLayer, Settings};
use toolgate_contract::{Durability, Layer};
use toolgate_journal::{ApprovalQueue, GrantStore, SigningKey, StateDirectory, load_or_create_signing_key};
use toolgate_policy::{CompiledConfig, compile};
use toolgate_sandbox::CacheStore;

use crate::error::WorkspaceError;
use crate::stores::Stores;
use crate::workspace::path_context;

/// Where a workspace is, and by which rules tools work in it. Nothing is opened before it is needed.
#[derive(Debug, Clone)]
pub struct WorkspaceLocation {
    /// The workspace's directory, absolute, with no links in it.
    pub directory: PathBuf,
    /// Where configuration comes from.
    pub config: ConfigPaths,
    /// The person's home directory.
    pub home: Option<PathBuf>,
    /// The layer of configuration that comes from the command line and the environment.
    pub flags: FlagLayer,
    /// The workspace whose trust counts: its own, or that of the one it is a copy of.
    trusted_as: PathBuf,
}

impl WorkspaceLocation {
    /// The workspace in this directory.
    #[allow(clippy::disallowed_methods, reason = "finds the workspace, before there is any gate")]
    pub fn find(directory: &Path, config: ConfigPaths, flags: FlagLayer) -> Result<Self, WorkspaceError> {
        let directory =
            std::fs::canonicalize(directory).map_err(|error| WorkspaceError::Directory(directory.to_owned(), error))?;
        Ok(Self { trusted_as: directory.clone(), directory, config, home: std::env::home_dir(), flags })
    }

    /// A copy of this workspace, by the same rules.
    pub fn copied_to(&self, directory: &Path) -> Result<Self, WorkspaceError> {
        let copy = Self::find(directory, self.config.clone(), self.flags.clone())?;
        Ok(Self { trusted_as: self.trusted_as.clone(), home: self.home.clone(), ..copy })
    }

    /// Reads every layer of configuration.
    pub fn load(&self) -> Result<CompiledConfig, WorkspaceError> {
        self.load_with(&self.flags)
    }

    /// Every layer of configuration, strongest first.
    pub fn layers(&self) -> Result<Vec<ConfigLayer>, WorkspaceError> {
        let mut layers = self.config.layers(&self.directory, &self.trusted_as, &self.flags)?;
        layers.sort_by_key(|input| std::cmp::Reverse(input.layer));
        Ok(layers)
    }

    /// The configuration files that exist: how messages call each, and its text.
    pub fn config_files(&self) -> Result<Vec<(Layer, String, String)>, WorkspaceError> {
        Ok(self.config.texts(&self.directory)?)
    }

    /// Reads every layer of configuration, where the person allows these hosts.
    pub fn load_allowing<'a>(&self, hosts: impl Iterator<Item = &'a str>) -> Result<CompiledConfig, WorkspaceError> {
        self.load_with(&self.flags.clone().allowing_hosts(hosts))
    }

    /// What the configuration would come to if a layer had this text instead of its own.
    pub fn load_draft(&self, layer: Layer, text: &str) -> Result<CompiledConfig, WorkspaceError> {
        const SOURCE: &str = "draft";
        let config = Config::parse(text, SOURCE).map_err(ConfigFileError::Invalid)?;
        let mut layers = self.config.layers(&self.directory, &self.trusted_as, &self.flags)?;
        layers.retain(|input| input.layer != layer);
        layers.push(ConfigLayer { layer, source: SOURCE.to_owned(), trusted: true, config });
        let mut compiled = compile(layers)?;
        compiled.policy = compiled.policy.with_paths(path_context(self, &compiled.settings));
        Ok(compiled)
    }

    fn load_with(&self, flags: &FlagLayer) -> Result<CompiledConfig, WorkspaceError> {
        Ok(compile(self.config.layers(&self.directory, &self.trusted_as, flags)?)?)
    }

    /// Whether the user trusts the workspace as its own file is now.
    pub fn is_trusted(&self) -> Result<bool, WorkspaceError> {
        Ok(self.config.trusts(&self.directory, &self.trusted_as)?)
    }

    /// The workspace's record.
    pub fn state(&self) -> Result<StateDirectory, WorkspaceError> {
        StateDirectory::open(&self.directory).map_err(WorkspaceError::Record)
    }

    /// Where rows and tasks are kept.
    pub fn stores(&self) -> Result<Stores, WorkspaceError> {
        Ok(Stores::of(self, &self.load()?.settings))
    }

    /// The key that signs journals; without a place to keep it there is none, and `doctor` says so.
    pub fn signing_key(&self) -> Option<SigningKey> {
        load_or_create_signing_key(&self.config.seal_key()).ok()
    }

    /// Where the head of the workspace's list of runs is kept; a copy that is removed soon has none.
    pub fn run_list_heads(&self) -> Option<PathBuf> {
        (self.trusted_as == self.directory).then(|| self.config.run_list_heads())
    }

    /// The private caches of package managers, of all workspaces.
    pub fn cache_store(&self, settings: &Settings) -> CacheStore {
        CacheStore::new(self.config.caches(), settings.cache_quota_bytes)
    }

    /// The name of this workspace's caches; a copy of a workspace uses those of the workspace itself.
    pub fn cache_key(&self) -> Result<String, WorkspaceError> {
        StateDirectory::open(&self.trusted_as).and_then(|state| state.workspace_key()).map_err(WorkspaceError::Record)
    }

    /// The grants that apply here. There are none in a copy of a workspace, and none without a key: nobody could tell
    /// them from forged ones.
    pub fn grants(&self, durability: Durability) -> Result<Option<GrantStore>, WorkspaceError> {
        if self.trusted_as != self.directory {
            return Ok(None);
        }
        let file = self.config.seal_key();
        let key = load_or_create_signing_key(&file).map_err(|error| WorkspaceError::SigningKey(file, error))?;
        Ok(Some(self.state()?.grants(&self.config.state, key, durability)?))
    }

    /// The queue at which approval requests wait for an answer. Without a key, nobody could tell an answer from a forgery.
    pub fn approvals(&self) -> Result<ApprovalQueue, WorkspaceError> {
        let file = self.config.seal_key();
        let key = load_or_create_signing_key(&file).map_err(|error| WorkspaceError::SigningKey(file, error))?;
        Ok(self.state()?.queue(key)?)
    }
}
