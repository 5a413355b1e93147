//! What in the workspace and the folders beside it is out of bounds for commands. That is asked before every command, and
//! looking into every folder would take longer than most commands do. So what a folder holds is remembered for as long as the
//! folder has the same mark: adding, removing or renaming anything in it gives it another one.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::{Access, EntryKind, ErrorCode, Files, Looked, Mark, Place, ToolError, Veil};

/// Looks for what a veil hides, and remembers what it saw. It belongs to one veil and to one set of files.
#[derive(Debug, Default)]
pub struct Lookout {
    /// Each root's own folder.
    tops: Mutex<Vec<Folder>>,
}

/// What is known of a folder.
#[derive(Debug, Default)]
struct Folder {
    name: OsString,
    /// What it had when it was looked into; none if it has to be looked into every time.
    mark: Option<Mark>,
    hidden: Vec<Place>,
    protected: Vec<Place>,
    /// What should be one of these, and has a name that no place can have.
    nameless: Option<String>,
    /// Those in it that are looked into as well, by name.
    folders: Vec<Folder>,
}

/// What is out of bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutOfBounds {
    /// What policy hides from everybody.
    pub hidden: Vec<Place>,
    /// What it lets nobody change.
    pub protected: Vec<Place>,
}

impl Lookout {
    /// What in the roots policy hides from everybody, and what it lets nobody change: a command must not get at these
    /// either. What can't be looked at is a fault: a secret might be there.
    pub fn out_of_bounds(&self, files: &dyn Files, veil: &dyn Veil) -> Result<OutOfBounds, ToolError> {
        let mut tops = self.tops.lock().unwrap_or_else(PoisonError::into_inner);
        tops.resize_with(files.roots(), Folder::default);
        let mut found = OutOfBounds::default();
        for (root, top) in tops.iter_mut().enumerate() {
            let place = Place { root, path: String::new() };
            Round { files, veil, path: PathBuf::new(), place, found: &mut found }.visit(top)?;
        }
        found.hidden.sort();
        found.protected.sort();
        Ok(found)
    }
}

/// One look at everything in a root.
struct Round<'a> {
    files: &'a dyn Files,
    veil: &'a dyn Veil,
    /// The folder at hand.
    path: PathBuf,
    /// The same, as it is shown.
    place: Place,
    found: &'a mut OutOfBounds,
}

impl Round<'_> {
    fn visit(&mut self, folder: &mut Folder) -> Result<(), ToolError> {
        let mut seen = Folder::default();
        let looked = self.files.look(self.place.root, &self.path, folder.mark.as_ref(), &mut |name, kind| {
            sort_in(self.veil, &mut self.place, name, kind, &mut seen);
        })?;
        match looked {
            Looked::AsBefore => {}
            Looked::Anew(mark) => {
                seen.folders.sort_by(|one, other| one.name.cmp(&other.name));
                remember(&mut seen.folders, std::mem::take(&mut folder.folders));
                *folder = Folder { name: std::mem::take(&mut folder.name), mark, ..seen };
            }
            // Nobody knows what is in it, so all of it is hidden.
            Looked::Closed => {
                let name = std::mem::take(&mut folder.name);
                let (hidden, nameless) = match self.path.to_str() {
                    Some(_) => (vec![self.place.clone()], None),
                    None => (Vec::new(), Some(self.place.path.clone())),
                };
                *folder = Folder { name, hidden, nameless, ..Folder::default() };
            }
            Looked::Nothing => *folder = Folder { name: std::mem::take(&mut folder.name), ..Folder::default() },
        }
        self.note(folder)?;
        for inner in &mut folder.folders {
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

    fn note(&mut self, folder: &Folder) -> Result<(), ToolError> {
        let is_nameless = self.path.to_str().is_none();
        let all = || folder.hidden.iter().chain(&folder.protected).map(|place| &place.path);
        if let Some(path) = folder.nameless.as_ref().or_else(|| all().next().filter(|_| is_nameless)) {
            let message = format!("`{path}` has to be kept from commands, and can't be, as its name isn't UTF-8.");
            return Err(ToolError::new(ErrorCode::SensitivePath, message)
                .with_hint("Ask the person to rename it, or the folder that it is in."));
        }
        self.found.hidden.extend_from_slice(&folder.hidden);
        self.found.protected.extend_from_slice(&folder.protected);
        Ok(())
    }
}

/// Puts an entry where it belongs. `place` is the folder's, and is so again afterwards.
fn sort_in(veil: &dyn Veil, place: &mut Place, name: &OsStr, kind: EntryKind, seen: &mut Folder) {
    let length = place.path.len();
    enter(&mut place.path, &name.to_string_lossy());
    let is_folder = kind == EntryKind::Folder;
    let kept = if veil.hides(Access::Read, place) {
        Some(&mut seen.hidden)
    } else if veil.hides(Access::Write, place) && (!is_folder || is_guarded_whole(veil, place)) {
        Some(&mut seen.protected)
    } else {
        None
    };
    match kept {
        Some(_) if name.to_str().is_none() => seen.nameless = Some(place.path.clone()),
        Some(kept) => kept.push(place.clone()),
        None if is_folder => seen.folders.push(Folder { name: name.to_owned(), ..Folder::default() }),
        None => {}
    }
    place.path.truncate(length);
}

/// Of some folders policy guards the name and not all that is in them: `.git` stays where it is, and git works in it.
fn is_guarded_whole(veil: &dyn Veil, folder: &Place) -> bool {
    veil.hides(Access::Write, &Place { root: folder.root, path: format!("{}/anything", folder.path) })
}

fn enter(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name);
}

/// What is known of folders goes along to where they are named again. Both lists are in the order of names.
fn remember(folders: &mut [Folder], known: Vec<Folder>) {
    let mut known = known.into_iter().peekable();
    for folder in folders {
        let is_before = |other: &Folder| other.name.as_os_str() < OsStr::new(&folder.name);
        while known.next_if(is_before).is_some() {}
        if let Some(same) = known.next_if(|other| other.name == folder.name) {
            *folder = same;
        }
    }
}
