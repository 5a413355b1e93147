//! Staged changes: the upper directories of a command's overlayfs mounts ("layers"), one for each writable root. They are on
//! the file system of the workspace, so that a change is applied by a rename. The process that made them locks their
//! directory; without a lock they were left behind by a process that was killed.

pub(crate) use crate::files::copy_across::copy;
pub(crate) use crate::files::layer_directory::LayerDirectory;
pub(crate) use crate::files::layer_directory::sweep;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Timespec, Timestamps};
use rustix::io::Errno;
use toolgate_contract::{
    CancellationToken, Change, ChangeSource, Difference, Differences, ErrorCode, FileContent, Files, LINK_MODE,
    PlaceContent, Rehearsals, StagedChanges, Substitute, ToolError, WorkspacePath,
};

use crate::files::layer_baseline::LayerBaseline;
use crate::files::openat2::openat2;
use crate::files::substitutes::PlacedSubstitutes;
use crate::process::{OverlayMount, Rehearsal, SandboxError};

/// What a command changed, in layers of its own.
pub struct OverlayChanges {
    /// The root that is the lower directory of each layer, and the directory of the layer.
    layers: Vec<(usize, PathBuf)>,
    started: Timestamp,
    substitutes: Mutex<PlacedSubstitutes>,
    baseline: Mutex<LayerBaseline>,
    /// New names of existing files, and those files.
    links: Mutex<BTreeMap<WorkspacePath, WorkspacePath>>,
    /// The directories of the roots, in their order.
    roots: Vec<PathBuf>,
    stop: CancellationToken,
    owner: Option<String>,
    approval: Vec<u8>,
    // Dropped in this order: the contents of the directory, then the directory.
    rehearsal: Rehearsal,
    directory: LayerDirectory,
}

impl OverlayChanges {
    /// The layers of a command that runs or ran. `roots` are the directories of the roots, in their order.
    pub(crate) fn new(rehearsal: Rehearsal, directory: LayerDirectory, roots: &[PathBuf]) -> Result<Self, ToolError> {
        let layers = layers(rehearsal.layers(), roots);
        let started =
            directory.begun().map_err(|error| ToolError::io("A command's changes can't be looked at", &error))?;
        let (substitutes, baseline, links, stop, approval) = Default::default();
        let roots = roots.to_vec();
        let owner = None;
        Ok(Self { layers, started, substitutes, baseline, links, roots, stop, owner, approval, rehearsal, directory })
    }

    /// Makes layers over what a command can change, in a new directory of `parent`.
    pub(crate) fn prepare(
        parent: &Path,
        writable: &[PathBuf],
        roots: &[PathBuf],
        substitutes: &[Substitute],
    ) -> Result<Self, SandboxError> {
        let directory = LayerDirectory::make(parent)?;
        let rehearsal = Rehearsal::prepare(writable, directory.path())?;
        let staged = Self::new(rehearsal, directory, roots)?;
        let placed = PlacedSubstitutes::place(&staged.layers, roots, substitutes)
            .map_err(|error| ToolError::io("What a command sees of hidden files can't be prepared", &error))?;
        *staged.substitutes.lock() = placed;
        Ok(staged)
    }

    /// How the layers are mounted.
    pub(crate) fn overlays(&self) -> Vec<OverlayMount> {
        self.rehearsal.overlays()
    }

    /// Opens layers that were kept, by their name in `parent`. They are kept until they are discarded.
    pub fn open(parent: &Path, name: &str, roots: &[PathBuf]) -> Result<Self, ToolError> {
        let gone = || {
            ToolError::new(ErrorCode::NotFound, format!("There is no rehearsal `{name}`."))
                .with_hint("A rehearsal can be committed once, within a day. Rehearse the command again.")
        };
        let mut directory = LayerDirectory::open(parent, name).map_err(|_| gone())?;
        let note = directory.note().map_err(|_| gone())?;
        let (owner, kept, baseline, approval): RehearsalNote = postcard::from_bytes(&note).map_err(|_| gone())?;
        let mut rehearsal = Rehearsal::of(kept, directory.path());
        rehearsal.set_kept(true);
        directory.kept = true;
        // A symlink that came with a repository could lead anywhere.
        let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        if !rehearsal.layers().all(|(_, upper)| is_directory(upper)) {
            return Err(gone());
        }
        Ok(Self { owner, approval, baseline: Mutex::new(baseline), ..Self::new(rehearsal, directory, roots)? })
    }

    fn set_kept(&mut self, stays: bool) {
        self.directory.kept = stays;
        self.rehearsal.set_kept(stays);
    }

    /// Gives an existing file its new name, if it still is the one that the command saw.
    fn link(&self, place: &WorkspacePath, above: &Path, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        let existing = self.links.lock().get(place).cloned().ok_or(Errno::NOENT)?;
        let root = self.roots.get(existing.root).ok_or(Errno::NOENT)?;
        let path = existing.bytes();
        let path = Path::new(OsStr::from_bytes(&path));
        let (parent, own) = (path.parent().unwrap_or(Path::new("")), path.file_name().ok_or(Errno::NOENT)?);
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, root, flags, Mode::empty())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let parent = openat2(root.as_fd(), parent, flags, resolve)?;
        let (there, seen) = (
            rustix::fs::statat(&parent, own, AtFlags::SYMLINK_NOFOLLOW)?,
            rustix::fs::statat(CWD, above, AtFlags::SYMLINK_NOFOLLOW)?,
        );
        let facts = |found: &rustix::fs::Stat| (found.st_mode, found.st_size, found.st_mtime, found.st_mtime_nsec);
        if facts(&there) != facts(&seen) {
            return Err(Errno::STALE);
        }
        rustix::fs::linkat(&parent, own, directory, name, AtFlags::empty())
    }

    /// Where the new side of a path is.
    fn above(&self, place: &WorkspacePath) -> Option<PathBuf> {
        let (_, upper) = self.layers.iter().find(|(root, _)| *root == place.root)?;
        Some(place.beneath(upper))
    }
}

/// What is stored with layers that are kept: the run that may apply them, their roots, what they were made over, and what was
/// approved of them.
type RehearsalNote = (Option<String>, Vec<PathBuf>, LayerBaseline, Vec<u8>);

/// Layers that were kept, in one directory.
pub struct StoredOverlays {
    /// The directory that holds them.
    pub parent: PathBuf,
    /// The directories of the roots, in their order.
    pub roots: Vec<PathBuf>,
}

impl Rehearsals for StoredOverlays {
    fn open(&self, name: &str) -> Result<Box<dyn StagedChanges>, ToolError> {
        Ok(Box::new(OverlayChanges::open(&self.parent, name, &self.roots)?))
    }
}

fn layers<'a>(made: impl Iterator<Item = (&'a Path, &'a Path)>, roots: &[PathBuf]) -> Vec<(usize, PathBuf)> {
    let number = |root: &Path| roots.iter().position(|known| known == root);
    made.filter_map(|(root, upper)| Some((number(root)?, upper.to_owned()))).collect()
}

impl StagedChanges for OverlayChanges {
    fn differences(&self, files: &dyn Files) -> Result<Differences, ToolError> {
        let unchanged = self.substitutes.lock().take_away();
        unchanged.map_err(|error| ToolError::io("What a command saw of hidden files can't be removed", &error))?;
        let mut baseline = self.baseline.lock();
        let differences =
            crate::files::overlay_diff::compare(&self.layers, self.started, &mut baseline, files, &self.stop)?;
        let link = |difference: &Difference| Some((difference.change.place.clone(), difference.linked_to.clone()?));
        *self.links.lock() = differences.all.iter().filter_map(link).collect();
        Ok(differences)
    }

    fn stop_comparing(&mut self, stop: CancellationToken) {
        self.stop = stop;
    }

    fn copy_instead_of_link(&self, place: &WorkspacePath) {
        self.links.lock().remove(place);
    }

    fn content(&self, place: &WorkspacePath, most: u64) -> Result<Option<FileContent>, ToolError> {
        let fault = |error| ToolError::io(&format!("What was made of `{}` can't be read", place.path), &error);
        let Some(path) = self.above(place) else { return Ok(None) };
        let Ok(found) = fs::symlink_metadata(&path) else { return Ok(None) };
        if found.is_symlink() {
            use std::os::unix::ffi::OsStringExt;
            let bytes = fs::read_link(&path).map_err(fault)?.into_os_string().into_vec().into();
            return Ok(Some(FileContent { bytes, mode: Some(LINK_MODE) }));
        }
        if !found.is_file() || found.len() > most {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        open_readable(&path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(fault)?;
        Ok(Some(FileContent { bytes: bytes.into(), mode: Some(found.mode() & 0o7777) }))
    }

    fn take_whole(&self, place: &WorkspacePath, directory: BorrowedFd<'_>, name: &str) -> std::io::Result<()> {
        let from = self.above(place).ok_or(Errno::NOENT)?;
        // Its own path may be longer than the kernel takes; that of its directory isn't.
        let (Some(parent), Some(last)) = (from.parent(), from.file_name()) else { return Err(Errno::NOENT.into()) };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::openat(CWD, parent, flags, Mode::empty())?;
        Ok(rustix::fs::renameat(&parent, last, directory, name)?)
    }

    fn keep(&mut self, owner: Option<&str>, approval: &[u8]) -> Result<String, ToolError> {
        let roots: Vec<PathBuf> = self.rehearsal.layers().map(|(root, _)| root.to_owned()).collect();
        let note: RehearsalNote = (owner.map(str::to_owned), roots, self.baseline.lock().clone(), approval.to_owned());
        let note = postcard::to_allocvec(&note).map_err(|_| ToolError::internal("The layers couldn't be noted."))?;
        self.directory.put_note(&note).map_err(|error| ToolError::io("A rehearsal can't be kept", &error))?;
        self.set_kept(true);
        let name = self.directory.path().file_name().unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    fn approval(&self) -> &[u8] {
        &self.approval
    }

    fn discard(&mut self) {
        self.set_kept(false);
    }
}

/// Opens a file of a layer, also one whose mode keeps its owner out.
fn open_readable(path: &Path) -> std::io::Result<File> {
    match (File::open(path), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == ErrorKind::PermissionDenied => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::openat(CWD, parent, flags, Mode::empty())?;
            Ok(crate::files::grant_owner_access::file(
                directory.as_fd(),
                name.as_bytes(),
                OFlags::RDONLY | OFlags::CLOEXEC,
            )?)
        }
        (opened, ..) => opened,
    }
}

impl ChangeSource for OverlayChanges {
    fn put(&self, change: &Change, directory: BorrowedFd<'_>, name: &[u8], temporary: &str) -> std::io::Result<()> {
        let from = self.above(&change.place).ok_or(Errno::NOENT)?;
        if self.link(&change.place, &from, directory, name).is_ok() {
            return Ok(());
        }
        // overlayfs's own record of the file that this was copied from.
        let _ = rustix::fs::lremovexattr(&from, c"user.overlay.origin");
        match rustix::fs::renameat(CWD, &from, directory, name) {
            Err(Errno::XDEV) => copy(&from, directory, name, temporary),
            other => Ok(other?),
        }
    }

    fn has_files_of_metadata_changes(&self) -> bool {
        true
    }

    fn take_back(&self, change: &Change, place_file: &PlaceContent<'_>) -> std::io::Result<()> {
        let above = self.above(&change.place).ok_or(Errno::NOENT)?;
        let (Some(directory), Some(name)) = (above.parent(), above.file_name()) else {
            return Err(Errno::INVAL.into());
        };
        if fs::symlink_metadata(&above).is_ok() {
            return Ok(());
        }
        place_file(fs::File::open(directory)?.as_fd(), name.as_bytes())
    }

    fn reverted(&self, change: &Change, files: &dyn Files) {
        if let Ok(Some(node)) = files.node(&change.place, false) {
            self.baseline.lock().restored(&change.place, &node);
        }
    }

    fn finish(&self, change: &Change, directory: BorrowedFd<'_>, name: &[u8]) {
        let Some(made) = self.above(&change.place).and_then(|path| fs::symlink_metadata(path).ok()) else { return };
        let unchanged = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let time = Timespec { tv_sec: made.mtime(), tv_nsec: made.mtime_nsec() as _ };
        let times = Timestamps { last_access: unchanged, last_modification: time };
        let _ = rustix::fs::utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW);
    }
}
