//! Compares a command's layers (upper directories) with the workspace as it is now. The layers are in overlayfs's own format: a
//! character device 0:0 (whiteout) means that the path was removed, an opaque directory replaces the one in the lower
//! directory, everything else is new. The lower directory is only read through the roots' descriptors.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use rustix::fs::{CWD, Mode, OFlags};
use toolgate_contract::{
    Change, Difference, Differences, EntryKind, FileMetadata, FileState, Files, ToolError, WorkspacePath,
};

use crate::files::stat;

/// More threads than this would only wait for the disk.
const MOST_THREADS: usize = 8;

/// Files that a command opened for writing or touched, without changing them, and the time that it gave them.
type TouchedFiles = Vec<(WorkspacePath, Timestamp)>;

/// A path that may differ: where it is, and where its new side is.
struct Candidate {
    place: WorkspacePath,
    above: Option<PathBuf>,
    /// Whether the workspace may have something there now.
    below: bool,
}

/// What of the lower directory is visible through a directory of a layer.
#[derive(Clone, Copy, PartialEq)]
enum LowerVisibility {
    Nothing,
    Everything,
    /// None of it: the layer's directory replaces the lower one.
    Replaced,
}

pub(super) fn compare(
    layers: &[(usize, PathBuf)],
    started: Timestamp,
    files: &dyn Files,
) -> Result<(Differences, TouchedFiles), ToolError> {
    let mut walk = LayerWalk { files, candidates: Vec::new() };
    for (root, upper) in layers {
        let place = WorkspacePath { root: *root, path: String::new() };
        walk.directory(upper, &place, LowerVisibility::Everything)?;
    }
    let LayerWalk { mut candidates, .. } = walk;
    candidates.sort_by(|one, other| one.place.cmp(&other.place));
    let mut found = Differences { all: Vec::with_capacity(candidates.len()) };
    let mut touched = Vec::new();
    for (candidate, sides) in candidates.iter().zip(both_sides(&candidates, files)) {
        let (before, after) = sides?;
        let is_stale = before.as_ref().is_some_and(|node| node.changed > started && !node.state.is_directory());
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

struct LayerWalk<'a> {
    files: &'a dyn Files,
    candidates: Vec<Candidate>,
}

impl LayerWalk<'_> {
    /// Compares a directory of a layer.
    fn directory(&mut self, upper: &Path, place: &WorkspacePath, below: LowerVisibility) -> Result<(), ToolError> {
        let fault = |error| ToolError::io("What a command changed can't be listed", &error);
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(upper).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let found = entry.metadata().map_err(fault)?;
            let inner = place.join_bytes(entry.file_name().as_bytes());
            names.insert(inner.clone());
            self.entry(entry.path(), &found, inner, below)?;
        }
        if below == LowerVisibility::Replaced {
            for entry in self.files.entries(place)?.iter().filter(|entry| !names.contains(&entry.place)) {
                self.deleted(&entry.place, entry.kind == EntryKind::Directory)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        above: PathBuf,
        found: &fs::Metadata,
        place: WorkspacePath,
        below: LowerVisibility,
    ) -> Result<(), ToolError> {
        let there = match below {
            LowerVisibility::Nothing => None,
            _ => self.files.node(&place, false)?.map(|node| node.state),
        };
        let was_directory = there.as_ref().is_some_and(FileState::is_directory);
        if found.file_type().is_char_device() && found.rdev() == 0 {
            return if there.is_some() { self.deleted(&place, was_directory) } else { Ok(()) };
        }
        if was_directory && !found.is_dir() {
            self.inside_deleted(&place)?;
        }
        if !was_directory || !found.is_dir() || there.is_some_and(|there| there.mode != found.mode()) {
            self.candidates.push(Candidate {
                place: place.clone(),
                above: Some(above.clone()),
                below: below_has(below),
            });
        }
        match (found.is_dir(), was_directory) {
            (false, _) => Ok(()),
            (true, false) => self.directory(&above, &place, LowerVisibility::Nothing),
            (true, true) if is_opaque(&above) => self.directory(&above, &place, LowerVisibility::Replaced),
            (true, true) => self.directory(&above, &place, LowerVisibility::Everything),
        }
    }

    /// A path that was removed, with everything in it.
    fn deleted(&mut self, place: &WorkspacePath, is_directory: bool) -> Result<(), ToolError> {
        if is_directory {
            self.inside_deleted(place)?;
        }
        self.candidates.push(Candidate { place: place.clone(), above: None, below: true });
        Ok(())
    }

    fn inside_deleted(&mut self, directory: &WorkspacePath) -> Result<(), ToolError> {
        for entry in self.files.entries(directory)? {
            self.deleted(&entry.place, entry.kind == EntryKind::Directory)?;
        }
        Ok(())
    }
}

fn below_has(below: LowerVisibility) -> bool {
    below != LowerVisibility::Nothing
}

fn is_opaque(directory: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::lgetxattr(directory, c"user.overlay.opaque", &mut value)
        .is_ok_and(|length| length == 1 && value == *b"y")
}

impl Candidate {
    /// What is there now, and what would be.
    fn sides(&self, files: &dyn Files) -> Result<BeforeAndAfter, ToolError> {
        let before = if self.below { files.node(&self.place, true)? } else { None };
        let after = self.above.as_deref().map(|above| state_of(above, &self.place)).transpose()?;
        // Only the hash is needed; thousands of open files would be too many.
        Ok((before.map(|node| FileMetadata { file: None, ..node }), after))
    }

    /// The modification time that the command left.
    fn touched(&self) -> Option<(WorkspacePath, Timestamp)> {
        let made = fs::symlink_metadata(self.above.as_deref()?).ok()?;
        Some((self.place.clone(), Timestamp::new(made.mtime(), made.mtime_nsec() as i32).ok()?))
    }
}

/// What is there and what would be.
type BeforeAndAfter = (Option<FileMetadata>, Option<FileState>);

fn state_of(above: &Path, place: &WorkspacePath) -> Result<FileState, ToolError> {
    let fault = |error: rustix::io::Errno| {
        ToolError::io(&format!("What was made of `{}` can't be read", place.path), &error.into())
    };
    let (directory, name) = (above.parent().unwrap_or(above), above.file_name().unwrap_or_default());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(CWD, directory, flags, Mode::empty()).map_err(fault)?;
    let found = stat::look(directory.as_fd(), name.as_bytes(), true).map_err(fault)?;
    found.map(|node| node.state).ok_or_else(|| ToolError::not_found(&place.path))
}

/// Reads both sides of every candidate, in their order. Hashing is most of the work, so several threads share it.
fn both_sides(candidates: &[Candidate], files: &dyn Files) -> Vec<Result<BeforeAndAfter, ToolError>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(candidates.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, candidate)) = take(candidates, &next) {
            done.push((index, candidate.sides(files)));
        }
        done
    };
    let mut done: Vec<(usize, Result<BeforeAndAfter, ToolError>)> = std::thread::scope(|scope| {
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
