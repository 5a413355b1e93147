//! What every command of a workspace is confined to, as plain data. A profile comes from trusted configuration, never from a
//! model: nothing here is parsed from a call's arguments. What was granted to one command is in its launch spec.

mod git_directory;
mod toolchains;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toolgate_contract::{STATE_DIRECTORY, WorkspacePath};

use super::limits::ResourceLimits;

/// What every command of a workspace is confined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What can be read.
    pub readable: Readable,
    /// Directories and files that can be changed.
    pub writable: Vec<PathBuf>,
    /// Directories beside those that commands share and can change, and that last: the private caches of package managers.
    /// Changes in them are never staged. A command that only reads can't change them either.
    pub caches: Vec<PathBuf>,
    /// Paths that can be read although they are inside of a hidden directory. Those that don't exist are skipped.
    pub shown: Vec<PathBuf>,
    /// The git directory of the workspace if it is outside of the workspace, as that of a linked worktree. It can be read.
    pub git_directory: Option<PathBuf>,
    /// The person's home, which is hidden apart from what is listed.
    pub home: Option<HomeDirectory>,
    /// Sensitive paths, hidden wherever they are. Those that don't exist are skipped.
    pub masked: Vec<PathBuf>,
    /// Sensitive files that programs open as a matter of course, such as `.env`. A decoy is mounted over each, and opening it is
    /// reported. Directories are masked instead, and so are files where decoys aren't possible.
    pub secret: Vec<PathBuf>,
    /// Paths inside of writable ones that can't be changed, such as `.git/hooks`. Those that don't exist are skipped: creating
    /// a mount point would change the workspace.
    pub protected: Vec<PathBuf>,
    /// Whether the command may use Unix sockets.
    pub unix_sockets: UnixSockets,
    /// Its resource limits.
    pub limits: ResourceLimits,
    /// The complete environment; nothing is inherited.
    pub environment: BTreeMap<OsString, OsString>,
    /// The directory that commands start in by default.
    pub working_directory: PathBuf,
    /// The directories that workspace paths are in; the workspace comes first.
    pub roots: Vec<PathBuf>,
    /// Where commands' changes are staged, outside of everything writable; none if they can't be.
    pub staging: Option<PathBuf>,
}

/// What can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable {
    /// The whole machine, apart from what is hidden.
    Everything,
    /// Only these paths. The names of their parents are visible. Those that don't exist are skipped.
    Only(Vec<PathBuf>),
}

/// The person's home: an empty tmpfs, with some paths of the real one mounted in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeDirectory {
    /// Its path.
    pub path: PathBuf,
    /// Paths in it that can be read, relative to it. Those that don't exist are skipped.
    pub shown: Vec<PathBuf>,
}

/// Whether a command may make Unix sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum UnixSockets {
    /// Among its own processes, connected ones only. The host's sockets that exist when it starts are hidden, and those that are
    /// bound later can't be connected to. Without our own namespaces it can make none.
    Private,
    /// None, apart from connected pairs.
    None,
}

/// Toolchains and settings in a home directory that builds need and that hold no secrets.
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

/// The system: programs, libraries, settings, and what package managers know of them. Other projects and other people's files
/// are in none of these.
const SYSTEM: &[&str] = &[
    "/bin",
    "/etc",
    "/gnu",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/sbin",
    "/snap",
    "/sys",
    "/usr",
    "/var/lib/apt",
    "/var/lib/ca-certificates",
    "/var/lib/dpkg",
    "/var/lib/pacman",
    "/var/lib/rpm",
    "/var/run",
];

/// Files with secrets of the machine, readable when Toolgate runs as root.
const MASKED_OF_SYSTEM: &[&str] = &[
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
];

impl Profile {
    /// The default profile for `workspace`: the system can be read, the workspace can be changed, the home is hidden apart from
    /// toolchains, and nothing else is there.
    pub fn for_workspace(workspace: &Path, home: Option<&Path>) -> Self {
        let shown = SHOWN_OF_HOME.iter().map(PathBuf::from).collect();
        let git = workspace.join(".git");
        let masked = MASKED_OF_SYSTEM.iter().map(PathBuf::from).chain([workspace.join(STATE_DIRECTORY)]);
        let git_directory = git_directory::outside_of(workspace);
        Self {
            readable: Self::system(),
            writable: vec![workspace.to_owned()],
            caches: Vec::new(),
            shown: git_directory.clone().into_iter().collect(),
            git_directory,
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

    /// The system's own directories.
    pub(super) fn system() -> Readable {
        Readable::Only(SYSTEM.iter().map(PathBuf::from).collect())
    }

    /// Shows the toolchains that an environment leads to, by `PATH` and by variables such as `JAVA_HOME`.
    #[must_use]
    pub fn with_toolchains(mut self, environment: &BTreeMap<OsString, OsString>) -> Self {
        let system = SYSTEM.iter().map(PathBuf::from);
        let known: Vec<PathBuf> = system.chain(self.writable.clone()).chain(self.shown.clone()).collect();
        let home = self.home.as_ref().map(|home| home.path.as_path());
        self.shown.extend(toolchains::find(environment, home, &known));
        self
    }

    /// The directory to show so that a program can be run that a person names by its path; none if it would show more than
    /// that.
    pub fn installation_of(program: &Path, home: Option<&Path>) -> Option<PathBuf> {
        toolchains::installation_of(program, home)
    }

    /// The absolute path of a workspace path.
    pub(super) fn locate(&self, place: &WorkspacePath) -> Option<PathBuf> {
        self.roots.get(place.root).map(|root| place.beneath(root))
    }

    /// Sets one variable of the environment.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }
}
