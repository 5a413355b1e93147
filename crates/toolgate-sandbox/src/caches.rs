//! Private caches of package managers, one set for each workspace, in the user's state directory.
//!
//! Inside a sandbox the user's own caches are read-only, or aren't there: what a command puts into them would be run by the
//! user's next build. So each workspace has a directory of its own, which its commands can write to and which lasts. Variables
//! lead the managers there. It is a plain directory, not an overlay: several commands use it at a time, and two overlays
//! over one upper directory are undefined, while every manager has locks for exactly this.
//!
//! What the user has already isn't downloaded again: where a manager can read a second cache, it is given the user's; for the
//! others the user's cache is mirrored by symlinks, which lead to the user's files, read-only inside (`mirror.rs`).
//! A manager's cache is made once the workspace uses it, so other workspaces pay neither for the mirror nor for mounts.

mod layer_stamps;
mod managers;
mod mirror;
mod store;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use self::layer_stamps::LayerStamps;
use self::managers::{
    CACHE_HOME, MANAGERS, Manager, MirrorMethod, UserLayer, UserPath, UsualPlace, Variable, names_any,
};
use self::mirror::Mirror;
use crate::process::Profile;

pub use self::store::{CacheStore, StoredCache};

/// Variables whose value programs split at spaces.
const SPLIT_AT_SPACES: &[&str] = &["GOFLAGS", "MAVEN_OPTS"];

/// The private caches of one workspace.
#[derive(Debug)]
pub struct PackageCaches {
    workspace: PathBuf,
    home: Option<PathBuf>,
    /// The user's environment, which says where the user's own caches are.
    environment: BTreeMap<OsString, OsString>,
    store: CacheStore,
    /// The name of the workspace's directory in the store.
    key: String,
    opened: Mutex<Option<OpenedCaches>>,
}

/// The caches of a workspace, from its first command on.
#[derive(Debug)]
struct OpenedCaches {
    /// The directory that commands see.
    private: PathBuf,
    stamps: LayerStamps,
    /// Held while this process may run commands, so that nobody clears the caches meanwhile.
    _lock: File,
}

/// What a command gets of the caches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheAccess {
    /// The private directory.
    directory: PathBuf,
    /// The user's caches that it reads.
    shown: Vec<PathBuf>,
    variables: Vec<(&'static str, OsString)>,
    /// Where installed programs are.
    programs: Vec<PathBuf>,
}

impl PackageCaches {
    /// The caches of `workspace`, under this name in the store. Nothing is made before a command needs it.
    pub fn new(
        store: CacheStore,
        key: String,
        workspace: &Path,
        home: Option<&Path>,
        environment: &BTreeMap<OsString, OsString>,
    ) -> Self {
        Self {
            workspace: workspace.to_owned(),
            home: home.map(Path::to_owned),
            environment: environment.clone(),
            store,
            key,
            opened: Mutex::new(None),
        }
    }

    /// Brings the caches up to date for a command, and says how it gets there. Takes a moment where something is mirrored for the
    /// first time; usually a few calls of `stat`.
    pub fn prepare(&self, command: &str) -> io::Result<CacheAccess> {
        let mut opened = self.opened.lock();
        if opened.is_none() {
            *opened = Some(self.open()?);
        }
        let Some(OpenedCaches { private, stamps, .. }) = opened.as_mut() else {
            return Err(io::ErrorKind::Other.into());
        };
        for manager in MANAGERS {
            let is_new = !stamps.uses(manager.name) && self.uses(manager, command);
            if is_new && !self.is_in_workspace(manager) {
                stamps.set_used(manager.name);
            }
        }
        let used: Vec<&Manager> = MANAGERS.iter().filter(|manager| stamps.uses(manager.name)).collect();
        for layer in used.iter().flat_map(|manager| manager.layers) {
            self.mirror(layer, private, stamps);
        }
        stamps.save();
        Ok(self.access(private, &used, command))
    }

    fn open(&self) -> io::Result<OpenedCaches> {
        let (directory, lock) = self.store.open(&self.key, &self.workspace)?;
        let stamps = LayerStamps::load(&directory);
        Ok(OpenedCaches { private: CacheStore::private_directory(&directory), stamps, _lock: lock })
    }

    fn uses(&self, manager: &Manager, command: &str) -> bool {
        manager.is_named_in(command) || manager.project_files.iter().any(|file| self.workspace.join(file).exists())
    }

    /// Whether the user's own cache is in the workspace, where commands write to it anyway.
    fn is_in_workspace(&self, manager: &Manager) -> bool {
        let sources = manager.layers.iter().map(|layer| layer.source).chain(manager.second);
        let mut paths = sources.filter_map(|source| self.locate(source));
        paths.any(|path| path.starts_with(&self.workspace))
    }

    /// Mirrors what is new in a directory of the user's.
    fn mirror(&self, layer: &UserLayer, private: &Path, stamps: &mut LayerStamps) {
        let Some(source) = self.locate(layer.source) else { return };
        let witness = layer.witness.and_then(|below| self.locate(UserPath { below, ..layer.source }));
        let is_removed = private.join(layer.target).symlink_metadata().is_err();
        let Some(stamp) = stamps.stamp_if_changed(layer, &source, witness.as_deref(), is_removed) else { return };
        let is_found_anyway = layer.method == MirrorMethod::Configuration
            && source.ancestors().nth(2).is_some_and(|above| self.workspace.starts_with(above));
        if is_found_anyway {
            return;
        }
        let others = MANAGERS.iter().flat_map(|manager| manager.layers).map(|other| other.source);
        let except: Vec<PathBuf> =
            others.filter_map(|other| self.locate(other)).filter(|path| *path != source).collect();
        let mirror = Mirror { source: &source, method: layer.method, except: &except };
        let updated = File::open(private).and_then(|private| mirror.update(private.as_fd(), Path::new(layer.target)));
        // What couldn't be mirrored is tried again with the next command, or downloaded.
        if updated.is_ok() {
            stamps.set(layer.target, stamp);
        }
    }

    fn access(&self, private: &Path, used: &[&Manager], command: &str) -> CacheAccess {
        let mut access = CacheAccess { directory: private.to_owned(), ..CacheAccess::default() };
        access.variables.push((CACHE_HOME.name, filled_in(CACHE_HOME.value, private, Path::new(""))));
        for manager in used {
            let second = manager.second.and_then(|second| self.locate(second)).filter(|path| path.is_dir());
            let is_refused =
                |variable: &&Variable| variable.unless_named.is_some_and(|word| names_any(command, &[word]));
            for variable in manager.variables.iter().filter(|variable| !is_refused(variable)) {
                access.variables.extend(self.variable(variable, private, second.as_deref()));
            }
            access.programs.extend(manager.installs.iter().map(|name| private.join(name)));
            access.shown.extend(second);
            // Where a program is installed, commands see everything anyway.
            let of_user =
                manager.layers.iter().filter(|layer| !matches!(layer.source.usual, UsualPlace::Installation(_)));
            access.shown.extend(of_user.filter_map(|layer| self.locate(layer.source)));
        }
        access.shown.retain(|path| path.exists());
        access
    }

    fn variable(&self, variable: &Variable, private: &Path, second: Option<&Path>) -> Option<(&'static str, OsString)> {
        let second = match variable.value.contains("{user}") {
            true => second?,
            false => Path::new(""),
        };
        let has_space = |path: &Path| path.as_os_str().to_string_lossy().contains(char::is_whitespace);
        let is_broken = SPLIT_AT_SPACES.contains(&variable.name) && (has_space(private) || has_space(second));
        (!is_broken).then(|| (variable.name, filled_in(variable.value, private, second)))
    }

    /// Where a directory of the user's is.
    fn locate(&self, place: UserPath) -> Option<PathBuf> {
        let named =
            self.environment.get(OsStr::new(place.variable)).map(PathBuf::from).filter(|path| path.is_absolute());
        let in_home = |path: &str| Some(self.home.as_ref()?.join(path));
        let base = named.or_else(|| match place.usual {
            UsualPlace::HomeUnlessRoot(_, of_root) if rustix::process::geteuid().is_root() => Some(of_root.into()),
            UsualPlace::Home(path) | UsualPlace::HomeUnlessRoot(path, _) => in_home(path),
            UsualPlace::Installation(program) => self.installation(program),
        })?;
        Some(if place.below.is_empty() { base } else { base.join(place.below) })
    }

    /// The directory that a program is installed in, such as `/usr` for `/usr/bin/node`.
    fn installation(&self, program: &str) -> Option<PathBuf> {
        let path = self.environment.get(OsStr::new("PATH"))?;
        let found = std::env::split_paths(path).find_map(|directory| directory.join(program).canonicalize().ok())?;
        found.ancestors().nth(2).map(Path::to_owned)
    }
}

/// A value with the directories filled in.
fn filled_in(value: &str, private: &Path, user: &Path) -> OsString {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    value.replace("{private}", &text(private)).replace("{user}", &text(user)).into()
}

impl CacheAccess {
    /// The profile of a command that uses the caches.
    #[must_use]
    pub fn added_to(self, mut profile: Profile) -> Profile {
        profile.environment.extend(self.variables.into_iter().map(|(name, value)| (name.into(), value)));
        if let Some(path) = profile.environment.get_mut(OsStr::new("PATH")) {
            // Last, so that nothing that was installed here stands in for a program of the system or the user.
            let all: Vec<PathBuf> = std::env::split_paths(path).chain(self.programs).collect();
            if let Ok(joined) = std::env::join_paths(all) {
                *path = joined;
            }
        }
        profile.shown.extend(self.shown);
        profile.caches.push(self.directory);
        profile
    }
}
