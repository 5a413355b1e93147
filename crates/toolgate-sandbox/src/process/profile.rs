//! What every command of a workspace is confined to, as plain data. A profile comes from trusted configuration, never from a
//! model: nothing here is parsed from a call's arguments. What was granted to one command is in its launch spec.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toolgate_contract::{STATE_DIRECTORY, WorkspacePath};

use super::limits::ResourceLimits;

/// What every command of a workspace is confined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What can be read, and only read.
    pub readable: Readable,
    /// Directories and files that can be changed.
    pub writable: Vec<PathBuf>,
    /// What can be read though it lies in something hidden. Those that don't exist are passed over.
    pub shown: Vec<PathBuf>,
    /// The person's home, which is hidden apart from what is listed.
    pub home: Option<HomeDirectory>,
    /// Sensitive places, hidden wherever they lie. Those that don't exist are passed over.
    pub masked: Vec<PathBuf>,
    /// Sensitive files that a program may open without meaning any harm, such as `.env`: it sees a decoy in place of each, and
    /// it is known which were opened. Where that can't be had they are masked, and so are directories.
    pub secret: Vec<PathBuf>,
    /// Places inside what is writable that stay as they are, such as `.git/hooks`. Those that don't exist are passed
    /// over: a placeholder would be a change of its own.
    pub protected: Vec<PathBuf>,
    /// Whether the command may use Unix sockets.
    pub unix_sockets: UnixSockets,
    /// How much it may use.
    pub limits: ResourceLimits,
    /// The whole environment; nothing is inherited.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where commands start, unless they say otherwise.
    pub working_directory: PathBuf,
    /// The directories that workspace paths are in; the workspace comes first.
    pub roots: Vec<PathBuf>,
    /// Where commands' changes are staged, outside of everything writable; none where none can be.
    pub staging: Option<PathBuf>,
}

/// What can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable {
    /// The whole machine, apart from what is hidden.
    Everything,
    /// These places and nothing else. The names of their parents can be seen.
    Only(Vec<PathBuf>),
}

/// The person's home: an empty directory of the command's own, with some of what is in the real one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// What of it can be read, relative to it. Those that don't exist are passed over.
    pub shown: Vec<PathBuf>,
}

/// Whether a command may make Unix sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum UnixSockets {
    /// Among its own processes. The sockets of the host that exist when it starts are hidden. Where namespaces aren't of our
    /// own making, this means none.
    Private,
    /// None, apart from connected pairs.
    None,
}

/// Toolchains and settings in a home that builds need and that hold no secrets.
const SHOWN_OF_HOME: &[&str] = &[
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".config/git/config",
    ".config/git/ignore",
    ".gitconfig",
    ".local/bin",
    ".local/lib",
    ".nvm",
    ".pyenv",
    ".rustup",
    "go",
];

/// Files that hold secrets of the machine, readable when Toolgate runs as root.
const MASKED_OF_SYSTEM: &[&str] = &[
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/root",
    "/home",
];

impl Profile {
    /// The usual confinement for work in `workspace`: the machine can be read, the workspace changed, the home is hidden
    /// apart from toolchains, and there is no network.
    pub fn for_workspace(workspace: &Path, home: Option<&Path>) -> Self {
        let shown = SHOWN_OF_HOME.iter().map(PathBuf::from).collect();
        let git = workspace.join(".git");
        let masked = MASKED_OF_SYSTEM.iter().map(PathBuf::from).chain([workspace.join(STATE_DIRECTORY)]);
        Self {
            readable: Readable::Everything,
            writable: vec![workspace.to_owned()],
            shown: Vec::new(),
            home: home.map(|path| HomeDirectory { path: path.to_owned(), shown }),
            masked: masked.collect(),
            secret: Vec::new(),
            protected: vec![git.join("hooks"), git.join("config")],
            unix_sockets: UnixSockets::Private,
            limits: ResourceLimits::default(),
            environment: BTreeMap::new(),
            working_directory: workspace.to_owned(),
            roots: vec![workspace.to_owned()],
            staging: None,
        }
    }

    /// The path of a place beneath one of the roots.
    pub(super) fn locate(&self, place: &WorkspacePath) -> Option<PathBuf> {
        self.roots.get(place.root).map(|root| root.join(&place.path))
    }

    /// Sets one variable of the environment.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }
}
