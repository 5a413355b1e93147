//! Compares a command's layers (upper directories) with the workspace as it is now. The layers are in overlayfs's own format: a
//! character device 0:0 (whiteout) means that the path was removed, an opaque directory replaces the one in the lower
//! directory, everything else is new. The lower directory is only read through the roots' descriptors.

use std::collections::{BTreeMap, BTreeSet};
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
    CancellationToken, Change, DIRECTORY_MODE, Difference, Differences, EntryKind, ErrorCode, FileAttributes,
    FileMetadata, FileState, Files, LINK_MODE, ToolError, UnreadableChange, WorkspacePath,
};

use crate::files::layer_baseline::LayerBaseline;
use crate::files::{layer_mode, stat};

/// More threads than this would only wait for the disk.
const MOST_THREADS: usize = 8;

/// A path that may differ: where it is, and where its new side is.
struct Candidate {
    place: WorkspacePath,
    above: Option<PathBuf>,
    /// Whether the workspace may have something there now.
    below: bool,
    /// A directory that the layer only holds because something in it was changed, and that somebody removed since.
    is_removed_directory: bool,
    /// A directory that was there, and that the command gave another time.
    has_new_time: bool,
    /// A file that was there and that somebody removed since, while the command wrote nothing to it: it changed a mode, or nothing.
    is_removed_file: bool,
    /// Something in a directory that the command removes, and that somebody changed or put there meanwhile.
    is_others: bool,
    /// The inode of a file of the layer that has several names there.
    linked_inode: Option<u64>,
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
    baseline: &mut LayerBaseline,
    files: &dyn Files,
    stop: &CancellationToken,
) -> Result<Differences, ToolError> {
    let mut walk = LayerWalk::new(files, started, baseline, stop);
    for (root, upper) in layers {
        let place = WorkspacePath { root: *root, path: String::new() };
        walk.layer(upper, &place)?;
    }
    walk.tell_renamed_files();
    walk.drop_removed_directories();
    let LayerWalk { mut candidates, mut unreadable, .. } = walk;
    candidates.retain(|candidate| !unreadable.iter().any(|failed| failed.place.covers(&candidate.place)));
    candidates.sort_by(|one, other| one.place.cmp(&other.place));
    let mut all = Vec::with_capacity(candidates.len());
    let sides = both_sides(&candidates, files, stop);
    check_time(stop)?;
    let mut names = LinkedNames::default();
    for (candidate, sides) in candidates.into_iter().zip(sides) {
        let path = files.shown(&candidate.place);
        let (before, after) = match sides {
            Ok(sides) => sides,
            Err(error) => {
                let mode = candidate.above.as_deref().map(mode_in_layer);
                unreadable.push(UnreadableChange { path, place: candidate.place, mode, reason: error.message });
                continue;
            }
        };
        let is_stale = match &before {
            // Others may work in a directory; but its layer has the old mode, and must not replace one that they set.
            Some(node) if node.state.is_directory() && after.as_ref().is_some_and(FileState::is_directory) => {
                node.changed > started && after.as_ref().is_some_and(|after| after.mode != node.state.mode)
            }
            // A directory that goes may be one that others made meanwhile, and an empty one has no files that tell.
            Some(node) => {
                candidate.is_others || node.changed > started && !baseline.is_restored(&candidate.place, node)
            }
            None => after.is_some() && (candidate.is_removed_file || baseline.existed(&candidate.place)),
        };
        let before = before.map(|node| node.state);
        let change = Change { path, place: candidate.place, before, after };
        names.note(candidate.linked_inode, &change, is_stale);
        if !change.is_nothing() {
            all.push(Difference { change, is_stale, linked_to: None });
        }
    }
    names.add_to(&mut all);
    baseline.remember(all.iter().filter(|one| one.change.before.is_some()).map(|one| &one.change.place));
    baseline.remember(names.existing.values());
    Ok(Differences { all, unreadable })
}

/// Files of the layer with several names: those that existed and are as they were, and those that are new.
#[derive(Default)]
struct LinkedNames {
    existing: BTreeMap<u64, WorkspacePath>,
    new: BTreeMap<WorkspacePath, u64>,
}

impl LinkedNames {
    fn note(&mut self, inode: Option<u64>, change: &Change, is_stale: bool) {
        match (inode, &change.before) {
            (Some(inode), Some(_)) if change.is_nothing() && !is_stale => {
                self.existing.insert(inode, change.place.clone());
            }
            (Some(inode), None) => {
                self.new.insert(change.place.clone(), inode);
            }
            _ => {}
        }
    }

    fn add_to(&self, differences: &mut [Difference]) {
        for difference in differences.iter_mut().filter(|_| !self.existing.is_empty()) {
            let inode = self.new.get(&difference.change.place);
            difference.linked_to = inode.and_then(|inode| self.existing.get(inode)).cloned();
        }
    }
}

/// An error once the time for comparing is over.
fn check_time(stop: &CancellationToken) -> Result<(), ToolError> {
    match stop.is_cancelled() {
        false => Ok(()),
        true => Err(ToolError::new(ErrorCode::Timeout, TOO_LATE)),
    }
}

const TOO_LATE: &str = "Comparing what it changed took longer than `processes.settle_seconds` allow.";

/// Lists what a layer holds, and what of the workspace it removes. What can't be listed costs only itself.
struct LayerWalk<'a> {
    files: &'a dyn Files,
    /// When the command started.
    started: Timestamp,
    baseline: &'a LayerBaseline,
    stop: &'a CancellationToken,
    /// Directories of the layer that are still to be listed.
    pending: Vec<(PathBuf, WorkspacePath, LowerVisibility)>,
    candidates: Vec<Candidate>,
    unreadable: Vec<UnreadableChange>,
    /// Whether the command removed or renamed something that was there, and left nothing in its place.
    has_whiteouts: bool,
}

impl<'a> LayerWalk<'a> {
    fn new(files: &'a dyn Files, started: Timestamp, baseline: &'a LayerBaseline, stop: &'a CancellationToken) -> Self {
        let (pending, candidates, unreadable) = (Vec::new(), Vec::new(), Vec::new());
        Self { files, started, baseline, stop, pending, candidates, unreadable, has_whiteouts: false }
    }

    /// Compares a whole layer. Without recursion: a command can nest directories deeper than a stack is.
    fn layer(&mut self, upper: &Path, place: &WorkspacePath) -> Result<(), ToolError> {
        self.directory(upper, place, LowerVisibility::Everything)?;
        while let Some((above, place, below)) = self.pending.pop() {
            check_time(self.stop)?;
            if let Err(error) = self.directory(&above, &place, below) {
                self.failed(place, Some(&above), error);
            }
        }
        Ok(())
    }

    fn failed(&mut self, place: WorkspacePath, above: Option<&Path>, error: ToolError) {
        let (path, mode) = (self.files.shown(&place), above.map(mode_in_layer));
        self.unreadable.push(UnreadableChange { path, place, mode, reason: error.message });
    }

    /// A file that the command renamed looks like one that somebody removed: copied from below, and not there. A rename leaves
    /// a whiteout, or what the command put in its place (`sed -i.bak`); so where there is any, such a file is the command's work.
    fn tell_renamed_files(&mut self) {
        if !self.candidates.iter().any(|candidate| candidate.is_removed_file) {
            return;
        }
        let is_replaced = |candidate: &Candidate| {
            let is_new = candidate.above.as_deref().is_some_and(|above| !is_copied(above));
            is_new && self.files.node(&candidate.place, false).is_ok_and(|node| node.is_some())
        };
        if self.has_whiteouts || self.candidates.iter().any(is_replaced) {
            self.candidates.iter_mut().for_each(|candidate| candidate.is_removed_file = false);
        }
    }

    /// Drops directories that somebody removed, unless the command wrote something into them, for which they are made again,
    /// or changed their mode, which the baseline tells. What the command removed from them is gone with them. A mode that
    /// was changed after the baseline can't be told from the old one, and isn't worth an empty directory.
    fn drop_removed_directories(&mut self) {
        if !self.candidates.iter().any(|candidate| candidate.is_removed_directory) {
            return;
        }
        let is_gone = |candidate: &Candidate| candidate.is_removed_directory || candidate.is_removed_file;
        let is_written = |candidate: &&Candidate| candidate.above.is_some() && !is_gone(candidate);
        let needed: BTreeSet<WorkspacePath> =
            self.candidates.iter().filter(is_written).flat_map(|candidate| candidate.place.ancestors()).collect();
        self.candidates.retain(|candidate| {
            let place = &candidate.place;
            !candidate.is_removed_directory || needed.contains(place) || self.baseline.existed(place)
        });
    }

    /// Compares a directory of a layer.
    fn directory(&mut self, upper: &Path, place: &WorkspacePath, below: LowerVisibility) -> Result<(), ToolError> {
        let fault = |error| ToolError::io("What a command changed can't be listed", &error);
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(upper).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let found = entry.metadata().map_err(fault)?;
            let inner = place.join_bytes(entry.file_name().as_bytes());
            names.insert(inner.clone());
            if let Err(error) = self.entry(entry.path(), &found, inner.clone(), below) {
                self.failed(inner, Some(&entry.path()), error);
            }
        }
        if below == LowerVisibility::Replaced {
            let is_others = self.files.node(place, false)?.is_some_and(|node| self.is_moved_here(place, &node));
            for entry in self.files.entries(place)?.into_iter().filter(|entry| !names.contains(&entry.place)) {
                self.deleted(entry.place, entry.kind == EntryKind::Directory, is_others);
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
            _ => self.files.node(&place, false)?,
        };
        let was_directory = there.as_ref().is_some_and(|node| node.state.is_directory());
        let is_missing = there.is_none();
        if found.file_type().is_char_device() && found.rdev() == 0 {
            self.has_whiteouts = true;
            if there.is_some() {
                self.deleted(place, was_directory, false);
            }
            return Ok(());
        }
        if was_directory && !found.is_dir() {
            self.inside_deleted(place.clone(), false);
        }
        let (below_has, mode) = (below != LowerVisibility::Nothing, layer_mode::of(&above, found));
        let has_new_time = there.as_ref().is_some_and(|there| self.has_time_set(there, found));
        if !was_directory || !found.is_dir() || has_new_time || there.is_some_and(|there| there.state.mode != mode) {
            let is_removed_directory = found.is_dir() && is_missing && is_copied(&above);
            let linked_inode = (found.is_file() && found.nlink() > 1).then(|| found.ino());
            let is_removed_file = is_missing && linked_inode.is_none() && self.is_unwritten_copy(&above, found);
            let (place, above) = (place.clone(), Some(above.clone()));
            let below = below_has;
            self.candidates.push(Candidate {
                place,
                above,
                below,
                is_removed_directory,
                has_new_time,
                is_removed_file,
                is_others: false,
                linked_inode,
            });
        }
        if found.is_dir() {
            layer_mode::make_accessible(&above, found)
                .map_err(|error| ToolError::io("A directory that a command made can't be opened", &error))?;
            let visible = match was_directory {
                false => LowerVisibility::Nothing,
                // In a directory that replaces the lower one, overlayfs marks none as opaque: nothing below is visible anyway.
                true if below == LowerVisibility::Replaced || is_opaque(&above) => LowerVisibility::Replaced,
                true => LowerVisibility::Everything,
            };
            self.pending.push((above, place, visible));
        }
        Ok(())
    }

    /// Whether the command gave a directory another time than that of its last entry (`touch -d`, `cp -p`, `tar`): one from before
    /// it started, or from the future. In a directory that others changed meanwhile, the old time is theirs.
    fn has_time_set(&self, there: &FileMetadata, found: &fs::Metadata) -> bool {
        let is_set = modified(found)
            .is_some_and(|time| time != there.modified && (time < self.started || time > Timestamp::now()));
        found.is_dir() && is_set && there.changed <= self.started
    }

    /// Whether overlayfs copied a file into the layer and the command wrote nothing to it since: a copy has the file's old time.
    fn is_unwritten_copy(&self, above: &Path, found: &fs::Metadata) -> bool {
        found.is_file() && modified(found).is_some_and(|time| time < self.started) && is_copied(above)
    }

    /// Whether somebody changed a directory or put it there while the command ran. What is in a directory that was moved has its old
    /// times, so only the directory tells.
    fn is_changed_by_others(&self, place: &WorkspacePath, node: &FileMetadata) -> bool {
        node.changed > self.started && !self.baseline.is_restored(place, node)
    }

    /// Whether somebody put a directory there while the command ran: a rename changes its ctime, and leaves its mtime.
    fn is_moved_here(&self, place: &WorkspacePath, node: &FileMetadata) -> bool {
        self.is_changed_by_others(place, node) && node.modified <= self.started
    }

    /// A path that was removed, with everything in it.
    fn deleted(&mut self, place: WorkspacePath, is_directory: bool, is_others: bool) {
        if is_directory {
            self.inside_deleted(place.clone(), is_others);
        }
        self.candidates.push(Candidate { is_others, ..Candidate::deleted(place) });
    }

    /// Everything in a removed directory. What is in a directory that others changed is theirs: it may have been moved there.
    fn inside_deleted(&mut self, directory: WorkspacePath, is_others: bool) {
        let mut pending = vec![(directory, is_others)];
        while let Some((directory, is_others)) = pending.pop().filter(|_| !self.stop.is_cancelled()) {
            let found = self.files.node(&directory, false).and_then(|node| Ok((node, self.files.entries(&directory)?)));
            let (node, entries) = match found {
                Ok(found) => found,
                Err(error) => {
                    self.failed(directory, None, error);
                    continue;
                }
            };
            let is_others = is_others || node.is_some_and(|node| self.is_changed_by_others(&directory, &node));
            for entry in entries {
                pending.extend((entry.kind == EntryKind::Directory).then(|| (entry.place.clone(), is_others)));
                self.candidates.push(Candidate { is_others, ..Candidate::deleted(entry.place) });
            }
        }
    }
}

/// The mode of something in a layer, as a change records it; that of a directory if it can't be told.
fn mode_in_layer(above: &Path) -> u32 {
    match fs::symlink_metadata(above) {
        Ok(found) if found.is_file() => found.mode() & 0o7777,
        Ok(found) if found.is_symlink() => LINK_MODE,
        Ok(found) => found.mode(),
        Err(_) => DIRECTORY_MODE,
    }
}

fn is_opaque(directory: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::lgetxattr(directory, c"user.overlay.opaque", &mut value)
        .is_ok_and(|length| length == 1 && value == *b"y")
}

/// Whether overlayfs copied something into the layer, rather than the command having made it.
fn is_copied(above: &Path) -> bool {
    let size_alone: &mut [u8] = &mut [];
    rustix::fs::lgetxattr(above, c"user.overlay.origin", size_alone).is_ok()
}

impl Candidate {
    fn deleted(place: WorkspacePath) -> Self {
        Self {
            place,
            above: None,
            below: true,
            is_removed_directory: false,
            has_new_time: false,
            is_removed_file: false,
            is_others: false,
            linked_inode: None,
        }
    }

    /// What is there now, and what would be.
    fn sides(&self, files: &dyn Files) -> Result<BeforeAndAfter, ToolError> {
        let before = if self.below { files.node(&self.place, true)? } else { None };
        let after = self.above.as_deref().map(|above| state_of(above, &self.place)).transpose()?;
        let attributes = (before.as_ref(), after.as_ref());
        let has_others = matches!(attributes, (Some(before), Some((_, after))) if before.attributes != *after);
        let mut after =
            after.map(|(state, attributes)| FileState { attributes: has_others.then_some(attributes), ..state });
        // Only the hash is needed; thousands of open files would be too many.
        let mut before = before.map(|node| FileMetadata { file: None, ..node });
        if let Some(before) = before.as_mut().filter(|_| has_others) {
            before.state.attributes = Some(before.attributes.clone());
        }
        if let (Some(after), Some(above)) = (after.as_mut().filter(|after| after.is_directory()), &self.above) {
            let is_new = !before.as_ref().is_some_and(|node| node.state.is_directory());
            if is_new || self.has_new_time {
                // Read now: applying moves everything out of the layer's directory, which sets its time.
                after.modified = fs::symlink_metadata(above).ok().as_ref().and_then(modified);
            }
            if let Some(node) = before.as_mut().filter(|_| self.has_new_time) {
                node.state.modified = Some(node.modified);
            }
        }
        Ok((before, after))
    }
}

fn modified(found: &fs::Metadata) -> Option<Timestamp> {
    Timestamp::new(found.mtime(), found.mtime_nsec() as i32).ok()
}

/// What is there and what would be.
type BeforeAndAfter = (Option<FileMetadata>, Option<FileState>);

fn state_of(above: &Path, place: &WorkspacePath) -> Result<(FileState, FileAttributes), ToolError> {
    let fault = |error: rustix::io::Errno| {
        ToolError::io(&format!("What was made of `{}` can't be read", place.path), &error.into())
    };
    let (directory, name) = (above.parent().unwrap_or(above), above.file_name().unwrap_or_default());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(CWD, directory, flags, Mode::empty()).map_err(fault)?;
    let found = stat::look(directory.as_fd(), name.as_bytes(), true).map_err(fault)?;
    let node = found.ok_or_else(|| ToolError::not_found(&place.path))?;
    let (state, attributes) = (node.state, node.attributes);
    let mode = if state.is_directory() { layer_mode::recorded(above).unwrap_or(state.mode) } else { state.mode };
    Ok((FileState { mode, ..state }, attributes))
}

/// Reads both sides of every candidate, in their order. Hashing is most of the work, so several threads share it.
fn both_sides(
    candidates: &[Candidate],
    files: &dyn Files,
    stop: &CancellationToken,
) -> Vec<Result<BeforeAndAfter, ToolError>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(candidates.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, candidate)) = take(candidates, &next).filter(|_| !stop.is_cancelled()) {
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
