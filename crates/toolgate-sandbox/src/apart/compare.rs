//! What differs between a command's layers and the workspace as it is now. The layers are in the overlay's own form: a
//! device with the number 0 means that something is gone, a folder marked opaque replaces the one below it, everything else
//! is new. What lies below is only ever looked at through the roots' descriptors.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use rustix::fs::{CWD, Mode, OFlags};
use toolgate_contract::{Change, Difference, Differences, EntryKind, FileState, Files, Node, Place, ToolError};

use crate::node;
use crate::roots::readable;

/// More threads than this wait for the disk together.
const MOST_THREADS: usize = 8;

/// Files that a command opened for writing or touched, without changing them, and the time that it gave them.
type Touched = Vec<(Place, Timestamp)>;

/// A place that may differ: where it is, and where its new side lies.
struct Candidate {
    place: Place,
    above: Option<PathBuf>,
    /// Whether something may be there now.
    below: bool,
}

/// What shows through a folder of a layer.
#[derive(Clone, Copy, PartialEq)]
enum Below {
    Nothing,
    Everything,
    /// There is a folder, and this one is in its place.
    Replaced,
}

pub(super) fn compare(
    layers: &[(usize, PathBuf)],
    started: Timestamp,
    files: &dyn Files,
) -> Result<(Differences, Touched), ToolError> {
    let mut walk = Walk { files, candidates: Vec::new(), unspeakable: Vec::new() };
    for (root, upper) in layers {
        let place = Place { root: *root, path: String::new() };
        walk.folder(upper, &place, Below::Everything)?;
    }
    let Walk { mut candidates, unspeakable, .. } = walk;
    candidates.sort_by(|one, other| one.place.cmp(&other.place));
    let mut found = Differences { all: Vec::with_capacity(candidates.len()), unspeakable };
    let mut touched = Vec::new();
    for (candidate, sides) in candidates.iter().zip(both_sides(&candidates, files)) {
        let (before, after) = sides?;
        let is_stale = before.as_ref().is_some_and(|node| node.changed > started && !node.state.is_folder());
        let before = before.map(|node| node.state);
        if before == after {
            touched.extend(candidate.touched().filter(|_| !is_stale));
            continue;
        }
        let change = Change { path: files.shown(&candidate.place), place: candidate.place.clone(), before, after };
        found.all.push(Difference { change, is_stale });
    }
    Ok((found, touched))
}

struct Walk<'a> {
    files: &'a dyn Files,
    candidates: Vec<Candidate>,
    unspeakable: Vec<String>,
}

impl Walk<'_> {
    /// Looks at a folder of a layer.
    fn folder(&mut self, upper: &Path, place: &Place, below: Below) -> Result<(), ToolError> {
        let fault = |error| ToolError::io("What a command changed can't be listed", &error);
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(upper).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let found = entry.metadata().map_err(fault)?;
            match entry.file_name().to_str() {
                Some(name) => {
                    self.entry(entry.path(), &found, beneath(place, name), below)?;
                    names.insert(name.to_owned());
                }
                None => {
                    let shown = readable(std::os::unix::ffi::OsStrExt::as_bytes(&*entry.file_name()));
                    self.unspeakable.push(self.files.shown(&beneath(place, &shown)));
                }
            }
        }
        if below == Below::Replaced {
            for entry in self.files.entries(place)?.iter().filter(|entry| !names.contains(&entry.name)) {
                self.deleted(&entry.place, entry.kind == EntryKind::Folder)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, above: PathBuf, found: &fs::Metadata, place: Place, below: Below) -> Result<(), ToolError> {
        let there = match below {
            Below::Nothing => None,
            _ => self.files.node(&place, false)?.map(|node| node.state),
        };
        let was_folder = there.as_ref().is_some_and(FileState::is_folder);
        if found.file_type().is_char_device() && found.rdev() == 0 {
            return if there.is_some() { self.deleted(&place, was_folder) } else { Ok(()) };
        }
        if was_folder && !found.is_dir() {
            self.inside_deleted(&place)?;
        }
        if !was_folder || !found.is_dir() || there.is_some_and(|there| there.mode != found.mode()) {
            self.candidates.push(Candidate {
                place: place.clone(),
                above: Some(above.clone()),
                below: below_has(below),
            });
        }
        match (found.is_dir(), was_folder) {
            (false, _) => Ok(()),
            (true, false) => self.folder(&above, &place, Below::Nothing),
            (true, true) if is_opaque(&above) => self.folder(&above, &place, Below::Replaced),
            (true, true) => self.folder(&above, &place, Below::Everything),
        }
    }

    /// A place that is gone, with everything in it.
    fn deleted(&mut self, place: &Place, is_folder: bool) -> Result<(), ToolError> {
        if is_folder {
            self.inside_deleted(place)?;
        }
        self.candidates.push(Candidate { place: place.clone(), above: None, below: true });
        Ok(())
    }

    fn inside_deleted(&mut self, folder: &Place) -> Result<(), ToolError> {
        for entry in self.files.entries(folder)? {
            self.deleted(&entry.place, entry.kind == EntryKind::Folder)?;
        }
        Ok(())
    }
}

fn below_has(below: Below) -> bool {
    below != Below::Nothing
}

fn beneath(folder: &Place, name: &str) -> Place {
    let path = if folder.path.is_empty() { name.to_owned() } else { format!("{}/{name}", folder.path) };
    Place { root: folder.root, path }
}

fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::lgetxattr(folder, c"user.overlay.opaque", &mut value).is_ok_and(|length| length == 1 && value == *b"y")
}

impl Candidate {
    /// What is there now, and what would be.
    fn sides(&self, files: &dyn Files) -> Result<Sides, ToolError> {
        let before = if self.below { files.node(&self.place, true)? } else { None };
        let after = self.above.as_deref().map(|above| state_of(above, &self.place)).transpose()?;
        // Only the hash was wanted; thousands of open files would be too many.
        Ok((before.map(|node| Node { file: None, ..node }), after))
    }

    /// The time that the command gave it.
    fn touched(&self) -> Option<(Place, Timestamp)> {
        let made = fs::symlink_metadata(self.above.as_deref()?).ok()?;
        Some((self.place.clone(), Timestamp::new(made.mtime(), made.mtime_nsec() as i32).ok()?))
    }
}

/// What is there and what would be.
type Sides = (Option<Node>, Option<FileState>);

fn state_of(above: &Path, place: &Place) -> Result<FileState, ToolError> {
    let fault = |error: rustix::io::Errno| {
        ToolError::io(&format!("What was made of `{}` can't be read", place.path), &error.into())
    };
    let (folder, name) = (above.parent().unwrap_or(above), above.file_name().and_then(|name| name.to_str()));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty()).map_err(fault)?;
    let found = node::look(folder.as_fd(), name.unwrap_or_default(), true).map_err(fault)?;
    found.map(|node| node.state).ok_or_else(|| ToolError::not_found(&place.path))
}

/// Both sides of every candidate, in their order. Hashing is most of the work, so several threads share it.
fn both_sides(candidates: &[Candidate], files: &dyn Files) -> Vec<Result<Sides, ToolError>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(candidates.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, candidate)) = take(candidates, &next) {
            done.push((index, candidate.sides(files)));
        }
        done
    };
    let mut done: Vec<(usize, Result<Sides, ToolError>)> = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        done.extend(helpers.into_iter().flat_map(|helper| helper.join().unwrap_or_else(|panic| resume_unwind(panic))));
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, sides)| sides).collect()
}

fn take<'a>(candidates: &'a [Candidate], next: &AtomicUsize) -> Option<(usize, &'a Candidate)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    candidates.get(index).map(|candidate| (index, candidate))
}
