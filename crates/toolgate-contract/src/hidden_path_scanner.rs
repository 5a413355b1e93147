//! What in the workspace and the directories beside it is out of bounds for commands. That is asked before every command, and
//! looking into every directory would take longer than most commands do. So what a directory holds is remembered for as long as the
//! directory has the same mark: adding, removing or renaming anything in it gives it another one.

use parking_lot::Mutex;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::{
    Access, DirectoryScan, DirectoryStamp, EntryKind, ErrorCode, Files, HiddenPaths, ToolError, WorkspacePath,
};

/// Looks for what a veil hides, and remembers what it saw. It belongs to one veil and to one set of files.
#[derive(Debug, Default)]
pub struct HiddenPathScanner {
    /// Each root's own directory.
    tops: Mutex<Vec<ScannedDirectory>>,
}

/// What is known of a directory.
#[derive(Debug, Default)]
struct ScannedDirectory {
    name: OsString,
    /// What it had when it was looked into; none if it has to be looked into every time.
    mark: Option<DirectoryStamp>,
    hidden: Vec<WorkspacePath>,
    protected: Vec<WorkspacePath>,
    /// What should be one of these, and has a name that no place can have.
    nameless: Option<String>,
    /// Those in it that are looked into as well, by name.
    directories: Vec<ScannedDirectory>,
}

/// What is out of bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestrictedPaths {
    /// What policy hides from everybody.
    pub hidden: Vec<WorkspacePath>,
    /// What it lets nobody change.
    pub protected: Vec<WorkspacePath>,
}

impl HiddenPathScanner {
    /// What in the roots policy hides from everybody, and what it lets nobody change: a command must not get at these
    /// either. What can't be looked at is a fault: a secret might be there.
    pub fn restricted_paths(
        &self,
        files: &dyn Files,
        hidden_paths: &dyn HiddenPaths,
    ) -> Result<RestrictedPaths, ToolError> {
        let mut tops = self.tops.lock();
        tops.resize_with(files.roots(), ScannedDirectory::default);
        let mut found = RestrictedPaths::default();
        for (root, top) in tops.iter_mut().enumerate() {
            let place = WorkspacePath { root, path: String::new() };
            ScanPass { files, hidden_paths, path: PathBuf::new(), place, found: &mut found }.visit(top)?;
        }
        found.hidden.sort();
        found.protected.sort();
        Ok(found)
    }
}

/// One look at everything in a root.
struct ScanPass<'a> {
    files: &'a dyn Files,
    hidden_paths: &'a dyn HiddenPaths,
    /// The directory at hand.
    path: PathBuf,
    /// The same, as it is shown.
    place: WorkspacePath,
    found: &'a mut RestrictedPaths,
}

impl ScanPass<'_> {
    fn visit(&mut self, directory: &mut ScannedDirectory) -> Result<(), ToolError> {
        let mut seen = ScannedDirectory::default();
        let looked = self.files.look(self.place.root, &self.path, directory.mark.as_ref(), &mut |name, kind| {
            sort_in(self.hidden_paths, &mut self.place, name, kind, &mut seen);
        })?;
        match looked {
            DirectoryScan::AsBefore => {}
            DirectoryScan::Anew(mark) => {
                seen.directories.sort_by(|one, other| one.name.cmp(&other.name));
                remember(&mut seen.directories, std::mem::take(&mut directory.directories));
                *directory = ScannedDirectory { name: std::mem::take(&mut directory.name), mark, ..seen };
            }
            // Nobody knows what is in it, so all of it is hidden.
            DirectoryScan::Closed => {
                let name = std::mem::take(&mut directory.name);
                let (hidden, nameless) = match self.path.to_str() {
                    Some(_) => (vec![self.place.clone()], None),
                    None => (Vec::new(), Some(self.place.path.clone())),
                };
                *directory = ScannedDirectory { name, hidden, nameless, ..ScannedDirectory::default() };
            }
            DirectoryScan::Nothing => {
                *directory =
                    ScannedDirectory { name: std::mem::take(&mut directory.name), ..ScannedDirectory::default() }
            }
        }
        self.note(directory)?;
        for inner in &mut directory.directories {
            let shown = self.place.path.len();
            self.path.push(&inner.name);
            enter(&mut self.place.path, &inner.name.to_string_lossy());
            let visited = self.visit(inner);
            self.path.pop();
            self.place.path.truncate(shown);
            visited?;
        }
        Ok(())
    }

    fn note(&mut self, directory: &ScannedDirectory) -> Result<(), ToolError> {
        let is_nameless = self.path.to_str().is_none();
        let all = || directory.hidden.iter().chain(&directory.protected).map(|place| &place.path);
        if let Some(path) = directory.nameless.as_ref().or_else(|| all().next().filter(|_| is_nameless)) {
            let message = format!("`{path}` has to be kept from commands, and can't be, as its name isn't UTF-8.");
            return Err(ToolError::new(ErrorCode::SensitivePath, message)
                .with_hint("Ask the person to rename it, or the directory that it is in."));
        }
        self.found.hidden.extend_from_slice(&directory.hidden);
        self.found.protected.extend_from_slice(&directory.protected);
        Ok(())
    }
}

/// Puts an entry where it belongs. `place` is the directory's, and is so again afterwards.
fn sort_in(
    hidden_paths: &dyn HiddenPaths,
    place: &mut WorkspacePath,
    name: &OsStr,
    kind: EntryKind,
    seen: &mut ScannedDirectory,
) {
    let length = place.path.len();
    enter(&mut place.path, &name.to_string_lossy());
    let is_directory = kind == EntryKind::Directory;
    let kept = if hidden_paths.hides(Access::Read, place) {
        Some(&mut seen.hidden)
    } else if hidden_paths.hides(Access::Write, place) && (!is_directory || is_guarded_whole(hidden_paths, place)) {
        Some(&mut seen.protected)
    } else {
        None
    };
    match kept {
        Some(_) if name.to_str().is_none() => seen.nameless = Some(place.path.clone()),
        Some(kept) => kept.push(place.clone()),
        None if is_directory => {
            seen.directories.push(ScannedDirectory { name: name.to_owned(), ..ScannedDirectory::default() })
        }
        None => {}
    }
    place.path.truncate(length);
}

/// Of some directories policy guards the name and not all that is in them: `.git` stays where it is, and git works in it.
fn is_guarded_whole(hidden_paths: &dyn HiddenPaths, directory: &WorkspacePath) -> bool {
    hidden_paths
        .hides(Access::Write, &WorkspacePath { root: directory.root, path: format!("{}/anything", directory.path) })
}

fn enter(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name);
}

/// What is known of directories goes along to where they are named again. Both lists are in the order of names.
fn remember(directories: &mut [ScannedDirectory], known: Vec<ScannedDirectory>) {
    let mut known = known.into_iter().peekable();
    for directory in directories {
        let is_before = |other: &ScannedDirectory| other.name.as_os_str() < OsStr::new(&directory.name);
        while known.next_if(is_before).is_some() {}
        if let Some(same) = known.next_if(|other| other.name == directory.name) {
            *directory = same;
        }
    }
}
