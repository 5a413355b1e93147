//! Where configuration comes from, and in which order: managed, user, workspace, flags and environment.
#![allow(clippy::disallowed_methods, reason = "reads the configuration files, before there is any gate")]

use std::io;
use std::path::{Path, PathBuf};

use toolgate_contract::Layer;

use crate::config::Config;
use crate::error::ConfigError;
use crate::flags::FlagLayer;
use crate::layer::ConfigLayer;
use crate::trust;

/// The workspace's own configuration file, at its root.
pub const WORKSPACE_FILE: &str = "toolgate.toml";

/// A file of the user's that can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// The environment doesn't say where the user's files are.
    #[error("HOME is not set, so the user's configuration can't be found. Set HOME.")]
    NoHome,
    /// The file couldn't be read.
    #[error("{} can't be read", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// The file couldn't be written.
    #[error("{} can't be written", .0.display())]
    Unwritable(PathBuf, #[source] io::Error),
    /// The directory of a file couldn't be created.
    #[error("{} can't be created", .0.display())]
    NoDirectory(PathBuf, #[source] io::Error),
    /// The list of trusted workspaces isn't JSON.
    #[error("{} can't be read as JSON. Fix it, or remove it to trust nothing.", .0.display())]
    NotJson(PathBuf, #[source] serde_json::Error),
    /// What the file says can't be used.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
}

/// Where the files are.
#[derive(Debug, Clone)]
pub struct ConfigPaths {
    /// The administrator's file.
    pub managed: PathBuf,
    /// The user's file.
    pub user: PathBuf,
    /// The user's private state: trust and the signing key.
    pub state: PathBuf,
    /// What of the user's lasts until they log out.
    pub runtime: Option<PathBuf>,
}

impl ConfigPaths {
    /// The usual places, by the XDG base directories.
    pub fn usual() -> Result<Self, ConfigFileError> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let base = |variable: &str, below_home: &str| {
            let given = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            given.or_else(|| home.as_ref().map(|home| home.join(below_home))).ok_or(ConfigFileError::NoHome)
        };
        Ok(Self {
            managed: PathBuf::from("/etc/toolgate/config.toml"),
            user: base("XDG_CONFIG_HOME", ".config")?.join("toolgate/config.toml"),
            state: base("XDG_STATE_HOME", ".local/state")?.join("toolgate"),
            runtime: std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute()),
        })
    }

    /// The file that remembers trusted workspaces.
    pub fn trusted(&self) -> PathBuf {
        self.state.join("trusted.json")
    }

    /// The directory of sockets by which a person attaches to processes.
    pub fn attach_sockets(&self) -> PathBuf {
        match &self.runtime {
            Some(directory) => directory.join("toolgate"),
            None => self.state.join("attach"),
        }
    }

    /// The key that signs journals.
    pub fn seal_key(&self) -> PathBuf {
        self.state.join("seal.key")
    }

    /// The directory of the heads of lists of runs, one for each workspace.
    pub fn run_list_heads(&self) -> PathBuf {
        self.state.join("run-lists")
    }

    /// The directory of private caches of package managers, one for each workspace.
    pub fn caches(&self) -> PathBuf {
        self.state.join("caches")
    }

    /// The directory of what was approved of other MCP servers.
    pub fn mcp_pins(&self) -> PathBuf {
        self.state.join("mcp/pins")
    }

    /// The directory of tokens for other MCP servers.
    pub fn mcp_tokens(&self) -> PathBuf {
        self.state.join("mcp/tokens")
    }

    /// The directory of the homes of other MCP servers.
    pub fn mcp_homes(&self) -> PathBuf {
        self.state.join("mcp/homes")
    }

    /// The directory of the homes and logs of language servers, one for each workspace.
    pub fn language_servers(&self) -> PathBuf {
        self.state.join("lsp")
    }

    /// The token that authenticates the owner over HTTP.
    pub fn http_token(&self) -> PathBuf {
        self.state.join("http.token")
    }

    /// The one-time links and browser sessions of the console, and the servers that run.
    pub fn console(&self) -> PathBuf {
        self.state.join("console")
    }

    /// Whether the user trusts a workspace as its own file is now; one without such a file is trusted as it is.
    pub fn trusts(&self, workspace: &Path, trusted_as: &Path) -> Result<bool, ConfigFileError> {
        let text = read_optional(&workspace.join(WORKSPACE_FILE))?.unwrap_or_default();
        Ok(trust::is_trusted(&self.trusted(), trusted_as, &text))
    }

    /// The files that exist, with their layer, the name that messages use and their text. What they say isn't looked at.
    pub fn texts(&self, workspace: &Path) -> Result<Vec<(Layer, String, String)>, ConfigFileError> {
        let own = [(Layer::Managed, &self.managed), (Layer::User, &self.user)];
        let own = own.map(|(layer, file)| (layer, file.display().to_string(), file.clone()));
        let workspace = (Layer::Workspace, WORKSPACE_FILE.to_owned(), workspace.join(WORKSPACE_FILE));
        let mut texts = Vec::new();
        for (layer, source, file) in own.into_iter().chain([workspace]) {
            texts.extend(read_optional(&file)?.map(|text| (layer, source, text)));
        }
        Ok(texts)
    }

    /// Reads every layer. A copy of a workspace is trusted as the workspace itself.
    pub fn layers(
        &self,
        workspace: &Path,
        trusted_as: &Path,
        flags: &FlagLayer,
    ) -> Result<Vec<ConfigLayer>, ConfigFileError> {
        let mut layers = Vec::new();
        for (layer, file) in [(Layer::Managed, &self.managed), (Layer::User, &self.user)] {
            if let Some(text) = read_optional(file)? {
                layers.push(read_layer(layer, &file.display().to_string(), true, &text)?);
            }
        }
        if let Some(text) = read_optional(&workspace.join(WORKSPACE_FILE))? {
            let trusted = trust::is_trusted(&self.trusted(), trusted_as, &text);
            layers.push(read_layer(Layer::Workspace, WORKSPACE_FILE, trusted, &text)?);
        }
        layers.push(read_layer(Layer::Flags, "the command line or the environment", true, &flags.to_toml())?);
        Ok(layers)
    }
}

fn read_layer(layer: Layer, source: &str, trusted: bool, text: &str) -> Result<ConfigLayer, ConfigError> {
    Ok(ConfigLayer { layer, source: source.to_owned(), trusted, config: Config::parse(text, source)? })
}

/// The text of a file that may be missing. A file that exists and can't be read must not count as missing.
pub fn read_optional(file: &Path) -> Result<Option<String>, ConfigFileError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ConfigFileError::Unreadable(file.to_owned(), error)),
    }
}
