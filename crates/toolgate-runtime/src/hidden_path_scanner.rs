//! Finds the paths in the workspace and the other roots that are restricted for commands. This runs before every
//! command, and scanning every directory would take longer than most commands. So the content of a directory is cached
//! for as long as the directory has the same stamp: adding, removing or renaming an entry changes it.

use parking_lot::Mutex;
use toolgate_contract::{
    Access, DirectoryScan, DirectoryStamp, EntryKind, Files, HiddenPaths, RestrictedPaths, ToolError, WorkspacePath,
};

use crate::hidden_hard_links::HiddenHardLinks;

/// A directory with a longer path is hidden whole: what is in it may have a path that the kernel doesn't take (`PATH_MAX`, 4,096
/// bytes with the workspace's own), so nothing in it could be hidden by itself.
const LONGEST_PATH: usize = 3_500;

/// Finds the paths that policy hides, and caches what it saw. It belongs to one policy and one set of files.
#[derive(Debug, Default)]
pub struct HiddenPathScanner {
    /// The top directory of each root.
    roots: Mutex<Vec<ScannedDirectory>>,
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

impl HiddenPathScanner {
    /// The paths in the roots that policy hides from all tools, with every other name that a hidden file has in the
    /// roots, and the paths that no tool may change: commands must not access them either. A directory that can't be scanned is an error: a secret might be in it.
    pub fn restricted_paths(
        &self,
        files: &dyn Files,
        hidden_paths: &dyn HiddenPaths,
    ) -> Result<RestrictedPaths, ToolError> {
        let mut roots = self.roots.lock();
        let mut found = scan(&mut roots, files, hidden_paths)?;
        let links = HiddenHardLinks::of(&found.hidden, files)?;
        if links.has_other_names() {
            for (root, top) in roots.iter().enumerate() {
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
        let found = scan(&mut self.roots.lock(), files, hidden_paths)?;
        HiddenHardLinks::of(&found.hidden, files)
    }
}

/// The restricted paths, by their names alone.
fn scan(
    roots: &mut Vec<ScannedDirectory>,
    files: &dyn Files,
    hidden_paths: &dyn HiddenPaths,
) -> Result<RestrictedPaths, ToolError> {
    roots.resize_with(files.roots(), ScannedDirectory::default);
    let mut found = RestrictedPaths::default();
    for (root, top) in roots.iter_mut().enumerate() {
        let place = WorkspacePath { root, path: String::new() };
        ScanPass { files, hidden_paths, place, found: &mut found }.visit(top)?;
    }
    Ok(found)
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

/// One scan of a root.
struct ScanPass<'a> {
    files: &'a dyn Files,
    hidden_paths: &'a dyn HiddenPaths,
    /// The current directory.
    place: WorkspacePath,
    found: &'a mut RestrictedPaths,
}

impl ScanPass<'_> {
    fn visit(&mut self, directory: &mut ScannedDirectory) -> Result<(), ToolError> {
        let mut seen = ScannedDirectory::default();
        let mut place = self.place.clone();
        let scan = self.files.look(&self.place, directory.stamp.as_ref(), &mut |name, kind| {
            add_entry(self.hidden_paths, &mut place, name, kind, &mut seen);
        })?;
        match scan {
            DirectoryScan::Unchanged => {}
            DirectoryScan::Scanned(stamp) => {
                seen.directories.sort_by(|one, other| one.name.cmp(&other.name));
                carry_over(&mut seen.directories, std::mem::take(&mut directory.directories));
                *directory = ScannedDirectory { name: std::mem::take(&mut directory.name), stamp, ..seen };
            }
            // Its content is unknown, so all of it is hidden.
            DirectoryScan::Closed => {
                let name = std::mem::take(&mut directory.name);
                let hidden = vec![self.place.clone()];
                *directory = ScannedDirectory { name, hidden, ..ScannedDirectory::default() };
            }
            DirectoryScan::Absent => {
                *directory =
                    ScannedDirectory { name: std::mem::take(&mut directory.name), ..ScannedDirectory::default() }
            }
        }
        self.found.hidden.extend_from_slice(&directory.hidden);
        self.found.protected.extend_from_slice(&directory.protected);
        let hidden_now = directory.by_content.iter().filter(|place| self.hidden_paths.hides(Access::Read, place));
        self.found.hidden.extend(hidden_now.cloned());
        for inner in &mut directory.directories {
            let shown = self.place.path.len();
            enter(&mut self.place.path, &inner.name);
            let visited = self.visit(inner);
            self.place.path.truncate(shown);
            visited?;
        }
        Ok(())
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
