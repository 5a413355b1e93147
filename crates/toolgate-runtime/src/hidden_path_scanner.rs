//! Finds the paths in the workspace and the other roots that are restricted for commands. This runs before every
//! command, and scanning every directory would take longer than most commands. So the content of a directory is cached
//! for as long as the directory has the same stamp: adding, removing or renaming an entry changes it. From the second
//! scan on, the directories are watched, and those in which nothing happened aren't asked for their stamps.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolgate_contract::{
    Access, ChangedDirectories, DirectoryScan, DirectoryStamp, EntryKind, Files, HiddenPaths, RestrictedPaths,
    ToolError, TreeWatch, WatchedChanges, WorkspacePath,
};

use crate::hidden_hard_links::HiddenHardLinks;

/// A directory with a longer path is hidden whole: what is in it may have a path that the kernel doesn't take (`PATH_MAX`, 4,096
/// bytes with the workspace's own), so nothing in it could be hidden by itself.
const LONGEST_PATH: usize = 3_500;

/// How long the watch alone is trusted, before every directory is asked for its stamp again.
const TRUSTED: Duration = Duration::from_secs(30);

/// Directories that are looked at in less time than it takes to have another thread do it.
const QUICK: usize = 64;

/// Finds the paths that policy hides, and caches what it saw. It belongs to one policy and one set of files.
#[derive(Default)]
pub struct HiddenPathScanner {
    tree: Mutex<ScannedTree>,
}

/// What was seen of all roots.
#[derive(Default)]
struct ScannedTree {
    /// The top directory of each root.
    roots: Vec<ScannedDirectory>,
    watch: ScanWatch,
    /// When every directory was last asked for its stamp.
    verified: Option<Instant>,
}

/// Whether the scanned directories are watched.
#[derive(Default)]
enum ScanWatch {
    /// Not before the second scan: who runs a single command shouldn't wait for that.
    #[default]
    NotYet,
    Running(Box<dyn TreeWatch>),
    /// Not every change would be noticed.
    Impossible,
}

/// What is known about a directory.
#[derive(Debug, Default)]
struct ScannedDirectory {
    name: String,
    /// The stamp at the time of the scan; none if it has to be scanned every time.
    stamp: Option<DirectoryStamp>,
    hidden: Vec<WorkspacePath>,
    protected: Vec<WorkspacePath>,
    /// Those that may be hidden or not, as their content is.
    by_content: Vec<WorkspacePath>,
    /// The subdirectories that are scanned as well, by name.
    directories: Vec<ScannedDirectory>,
}

impl ScannedDirectory {
    /// Whether it and those beneath it are at most as many as are left.
    fn is_within(&self, left: &mut usize) -> bool {
        match left.checked_sub(1 + self.by_content.len()) {
            Some(fewer) => {
                *left = fewer;
                self.directories.iter().all(|directory| directory.is_within(left))
            }
            None => false,
        }
    }
}

impl HiddenPathScanner {
    /// Whether the next scan takes next to no time: nobody scans now, and few directories are known.
    pub fn is_quick(&self) -> bool {
        self.tree.try_lock().is_some_and(|tree| {
            let mut left = QUICK;
            !tree.roots.is_empty() && tree.roots.iter().all(|root| root.is_within(&mut left))
        })
    }

    /// The paths in the roots that policy hides from all tools, with every other name that a hidden file has in the
    /// roots, and the paths that no tool may change: commands must not access them either. A directory that can't be scanned is an error: a secret might be in it.
    pub fn restricted_paths(
        &self,
        files: &dyn Files,
        hidden_paths: &dyn HiddenPaths,
    ) -> Result<RestrictedPaths, ToolError> {
        let mut tree = self.tree.lock();
        let mut found = tree.scan(files, hidden_paths)?;
        let links = HiddenHardLinks::of(&found.hidden, files)?;
        if links.has_other_names() {
            for (root, top) in tree.roots.iter().enumerate() {
                let place = WorkspacePath { root, path: String::new() };
                add_other_names(&links, top, &place, files, &mut found.hidden)?;
            }
        }
        found.hidden.sort();
        found.hidden.dedup();
        found.protected.sort();
        Ok(found)
    }

    /// The hidden files that have other names too.
    pub(crate) fn hard_links(
        &self,
        files: &dyn Files,
        hidden_paths: &dyn HiddenPaths,
    ) -> Result<HiddenHardLinks, ToolError> {
        let found = self.tree.lock().scan(files, hidden_paths)?;
        HiddenHardLinks::of(&found.hidden, files)
    }
}

impl ScannedTree {
    /// The restricted paths, by their names alone.
    fn scan(&mut self, files: &dyn Files, hidden_paths: &dyn HiddenPaths) -> Result<RestrictedPaths, ToolError> {
        let now = Instant::now();
        let changed = self.changed(files, now);
        let is_complete = changed == ChangedDirectories::Unknown;
        // Until this scan has succeeded, nothing that the watch reports later says what changed since.
        let verified = self.verified.take();
        self.roots.resize_with(files.roots(), ScannedDirectory::default);
        let watch = match &self.watch {
            ScanWatch::Running(watch) => Some(watch.as_ref()),
            ScanWatch::NotYet | ScanWatch::Impossible => None,
        };
        let place = WorkspacePath { root: 0, path: String::new() };
        let found = RestrictedPaths::default();
        let mut pass = ScanPass { files, hidden_paths, changed, watch, is_watched: true, place, found };
        for (root, top) in self.roots.iter_mut().enumerate() {
            pass.place.root = root;
            pass.visit(top, false)?;
        }
        let ScanPass { is_watched, found, .. } = pass;
        if !is_watched {
            self.watch = ScanWatch::Impossible;
        }
        self.verified = if is_complete { Some(now) } else { verified };
        Ok(found)
    }

    /// Where something changed since the last scan, as far as that is known.
    fn changed(&mut self, files: &dyn Files, now: Instant) -> ChangedDirectories {
        let verified = self.verified.filter(|verified| now.duration_since(*verified) < TRUSTED);
        match &self.watch {
            ScanWatch::Running(watch) => {
                // What happened before every directory is asked is of no interest after that.
                let changed = watch.changes();
                verified.map_or(ChangedDirectories::Unknown, |_| changed)
            }
            ScanWatch::NotYet if self.verified.is_some() => {
                self.watch = files.watch(WatchedChanges::Names).map_or(ScanWatch::Impossible, ScanWatch::Running);
                ChangedDirectories::Unknown
            }
            ScanWatch::NotYet | ScanWatch::Impossible => ChangedDirectories::Unknown,
        }
    }
}

/// Adds the other names of hidden files in a directory and beneath it.
fn add_other_names(
    links: &HiddenHardLinks,
    directory: &ScannedDirectory,
    place: &WorkspacePath,
    files: &dyn Files,
    hidden: &mut Vec<WorkspacePath>,
) -> Result<(), ToolError> {
    hidden.extend(links.names_in(place, files)?);
    for inner in &directory.directories {
        let mut place = place.clone();
        enter(&mut place.path, &inner.name);
        add_other_names(links, inner, &place, files, hidden)?;
    }
    Ok(())
}

/// One scan of all roots.
struct ScanPass<'a> {
    files: &'a dyn Files,
    hidden_paths: &'a dyn HiddenPaths,
    /// Where something changed since the last scan.
    changed: ChangedDirectories,
    /// What watches each directory from before it is scanned.
    watch: Option<&'a dyn TreeWatch>,
    /// Whether every directory is watched.
    is_watched: bool,
    /// The current directory.
    place: WorkspacePath,
    found: RestrictedPaths,
}

impl ScanPass<'_> {
    /// Scans a directory and those in it, unless nothing happened there. `is_replaced` says that another directory may
    /// have this name now, or the same one another mode.
    fn visit(&mut self, directory: &mut ScannedDirectory, is_replaced: bool) -> Result<(), ToolError> {
        let is_changed = self.changed.contains(&self.place);
        let is_rescanned = (is_replaced || is_changed) && self.rescan(directory)?;
        self.found.hidden.extend_from_slice(&directory.hidden);
        self.found.protected.extend_from_slice(&directory.protected);
        let hidden_now = directory.by_content.iter().filter(|place| self.hidden_paths.hides(Access::Read, place));
        self.found.hidden.extend(hidden_now.cloned());
        for inner in &mut directory.directories {
            let shown = self.place.path.len();
            enter(&mut self.place.path, &inner.name);
            let visited = self.visit(inner, is_changed || is_rescanned);
            self.place.path.truncate(shown);
            visited?;
        }
        Ok(())
    }

    /// Scans a directory, unless it still has its stamp. Returns whether it was scanned.
    fn rescan(&mut self, directory: &mut ScannedDirectory) -> Result<bool, ToolError> {
        let is_watched = self.watch.is_none_or(|watch| watch.add(&self.place));
        let mut seen = ScannedDirectory::default();
        let mut place = self.place.clone();
        let scan = self.files.look(&self.place, directory.stamp.as_ref(), &mut |name, kind| {
            add_entry(self.hidden_paths, &mut place, name, kind, &mut seen);
        })?;
        self.is_watched &= is_watched || matches!(scan, DirectoryScan::Closed | DirectoryScan::Absent);
        let name = std::mem::take(&mut directory.name);
        match scan {
            DirectoryScan::Unchanged => {
                directory.name = name;
                return Ok(false);
            }
            DirectoryScan::Scanned(stamp) => {
                seen.directories.sort_by(|one, other| one.name.cmp(&other.name));
                carry_over(&mut seen.directories, std::mem::take(&mut directory.directories));
                *directory = ScannedDirectory { name, stamp, ..seen };
            }
            // Its content is unknown, so all of it is hidden. The directory that it is in tells when it gets another mode.
            DirectoryScan::Closed => {
                *directory = ScannedDirectory { name, hidden: vec![self.place.clone()], ..ScannedDirectory::default() };
            }
            DirectoryScan::Absent => *directory = ScannedDirectory { name, ..ScannedDirectory::default() },
        }
        Ok(true)
    }
}

/// Adds an entry to the list it belongs to. `place` is the directory's path, and is restored afterwards.
fn add_entry(
    hidden_paths: &dyn HiddenPaths,
    place: &mut WorkspacePath,
    name: &str,
    kind: EntryKind,
    seen: &mut ScannedDirectory,
) {
    let length = place.path.len();
    enter(&mut place.path, name);
    let is_directory = kind == EntryKind::Directory;
    let is_too_deep = is_directory && place.path.len() > LONGEST_PATH;
    let restricted = if !is_too_deep && hidden_paths.depends_on_content(place) {
        Some(&mut seen.by_content)
    } else if is_too_deep || hidden_paths.hides(Access::Read, place) {
        Some(&mut seen.hidden)
    } else if hidden_paths.hides(Access::Write, place) && (!is_directory || is_entirely_protected(hidden_paths, place))
    {
        Some(&mut seen.protected)
    } else {
        None
    };
    match restricted {
        Some(restricted) => restricted.push(place.clone()),
        None if is_directory => {
            seen.directories.push(ScannedDirectory { name: name.to_owned(), ..ScannedDirectory::default() })
        }
        None => {}
    }
    place.path.truncate(length);
}

/// Whether policy restricts everything in a directory. Of some directories it only protects the name: `.git` can't be
/// replaced, but git works in it.
fn is_entirely_protected(hidden_paths: &dyn HiddenPaths, directory: &WorkspacePath) -> bool {
    hidden_paths
        .hides(Access::Write, &WorkspacePath { root: directory.root, path: format!("{}/anything", directory.path) })
}

fn enter(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name);
}

/// Carries known subdirectories over to the new list. Both lists are ordered by name.
fn carry_over(directories: &mut [ScannedDirectory], known: Vec<ScannedDirectory>) {
    let mut known = known.into_iter().peekable();
    for directory in directories {
        let is_before = |other: &ScannedDirectory| other.name < directory.name;
        while known.next_if(is_before).is_some() {}
        if let Some(same) = known.next_if(|other| other.name == directory.name) {
            *directory = same;
        }
    }
}
