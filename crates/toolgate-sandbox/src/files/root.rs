//! The roots: directories that tools may access, each kept open. Every access starts from a root's descriptor.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;
use toolgate_contract::{
    Access, BeforeApply, Change, ChangeSource, DirectoryEntry, DirectoryScan, DirectoryStamp, Effect, EntryKind,
    EntryStatus, ErrorCode, FileContent, FileEdit, FileMetadata, Files, GuaranteeLevel, LINK_MODE, LocatedEffect,
    OpenFile, RootAccess, ToolError, TreeWatch, VisitorFactory, WalkOptions, WatchedChanges, WorkspacePath, counted,
    escape_path,
};

use crate::files::atomic_write::{new_name, old_name};
use crate::files::openat2;
use crate::files::openat2::OpenMethod;
use crate::files::resolve::{lexical, outside};
use crate::files::suspended_modes::SuspendedModes;
use crate::files::tree_watch::DirectoryWatch;
use crate::files::walk::{WalkRoot, walk};

/// Why a root couldn't be opened.
#[derive(Debug, thiserror::Error)]
#[error("The directory {} can't be used as a root: {error}. Check that it exists and that you may enter it.", path.display())]
pub struct RootsError {
    path: PathBuf,
    error: Errno,
}

/// The workspace and the other directories that were configured beside it.
#[derive(Debug)]
pub struct Roots {
    roots: Vec<RootHandle>,
    method: OpenMethod,
    suspended_modes: SuspendedModes,
}

#[derive(Debug)]
struct RootHandle {
    /// Absolute and without symlinks, as the kernel reports it for the descriptor.
    path: PathBuf,
    directory: OwnedFd,
    access: RootAccess,
}

impl Roots {
    /// Opens the workspace, which is writable, as the first root.
    pub fn open(workspace: &Path) -> Result<Self, RootsError> {
        let (method, suspended_modes) = (OpenMethod::probe(), SuspendedModes::default());
        let mut roots = Self { roots: Vec::new(), method, suspended_modes };
        roots.add(workspace, RootAccess::Write)?;
        Ok(roots)
    }

    /// Opens one more root.
    pub fn add(&mut self, path: &Path, access: RootAccess) -> Result<(), RootsError> {
        let fault = |error| RootsError { path: path.to_owned(), error };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let real = std::fs::canonicalize(path)
            .map_err(|error| fault(Errno::from_raw_os_error(error.raw_os_error().unwrap_or_default())))?;
        let directory = rustix::fs::openat(CWD, &real, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(fault)?;
        self.roots.push(RootHandle { path: real, directory, access });
        Ok(())
    }

    /// Forces a method of opening, so that tests can exercise the fallback.
    #[must_use]
    pub fn with_open_method(mut self, method: OpenMethod) -> Self {
        self.method = method;
        self
    }

    /// The method by which files are opened beneath the roots.
    pub fn open_method(&self) -> OpenMethod {
        self.method
    }

    /// The workspace's directory, absolute and without symlinks.
    pub fn workspace(&self) -> &Path {
        &self.roots[0].path
    }

    fn open_at(&self, place: &WorkspacePath, flags: OFlags) -> Result<OwnedFd, ToolError> {
        let root = self.root(place)?;
        openat2::open(self.method, root.directory.as_fd(), &place.bytes(), flags).map_err(|error| refusal(place, error))
    }

    fn root(&self, place: &WorkspacePath) -> Result<&RootHandle, ToolError> {
        self.roots.get(place.root).ok_or_else(|| ToolError::internal(format!("There is no root {}.", place.root)))
    }

    /// Where the path of one effect leads; with `itself`, a symlink at its end isn't followed. A path to restore is taken
    /// literally: it is recorded without links, and one that has come to be on the way since leads somewhere else.
    fn locate_one(&self, effect: Effect, itself: bool) -> Result<LocatedEffect, ToolError> {
        let Some((access, path)) = effect.path() else { return Ok(LocatedEffect::nowhere(effect)) };
        let paths: Vec<&Path> = self.roots.iter().map(|root| root.path.as_path()).collect();
        let written = lexical(&paths, path)?;
        if access > Access::Read && self.root(&written)?.access == RootAccess::Read {
            return Err(ToolError::new(ErrorCode::PolicyDenied, format!("`{path}` is in a root that is read-only.")));
        }
        let real = match effect {
            Effect::Restore { .. } => written.clone(),
            _ => self.real(&written, itself).map_err(|error| match error {
                Errno::XDEV => outside(path, "a link on the way leads out of its root"),
                error => refusal(&written, error),
            })?,
        };
        Ok(LocatedEffect { effect, written: Some(written), real: Some(real) })
    }

    /// Where symlinks lead. With `itself`, only the directory is resolved.
    fn real(&self, written: &WorkspacePath, itself: bool) -> Result<WorkspacePath, Errno> {
        let directory = self.roots[written.root].directory.as_fd();
        let path = match (itself, written.path.rsplit_once('/')) {
            _ if self.is_plain(written) => written.path.clone(),
            (true, Some((parent, name))) => match openat2::resolve(self.method, directory, parent)?.as_str() {
                "" => name.to_owned(),
                parent => format!("{parent}/{name}"),
            },
            (true, None) => written.path.clone(),
            _ => openat2::resolve(self.method, directory, &written.path)?,
        };
        Ok(WorkspacePath { root: written.root, path })
    }

    /// Whether the path exists and has no symlinks: the common case, found out by one call. A name in the root itself has no
    /// directories on the way.
    fn is_plain(&self, written: &WorkspacePath) -> bool {
        let root = self.roots[written.root].directory.as_fd();
        match written.path.contains('/') || written.path.is_empty() {
            true => openat2::open(self.method, root, &written.bytes(), OFlags::PATH).is_ok(),
            false => rustix::fs::statat(root, &*written.bytes(), AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| kind_of(&stat) != EntryKind::Link),
        }
    }
}

impl Files for Roots {
    fn locate(&self, effects: Vec<Effect>) -> Result<Vec<LocatedEffect>, ToolError> {
        let paths = effects.iter().filter_map(Effect::path);
        let removed: BTreeSet<String> =
            paths.filter(|(access, _)| *access == Access::Delete).map(|(_, path)| path.to_owned()).collect();
        let locate = |effect: Effect| {
            let itself =
                matches!(effect, Effect::Entry { .. }) || effect.path().is_some_and(|(_, path)| removed.contains(path));
            self.locate_one(effect, itself)
        };
        effects.into_iter().map(locate).collect()
    }

    fn open(&self, place: &WorkspacePath) -> Result<OpenFile, ToolError> {
        // A pipe or device is opened without blocking, and then refused.
        regular_file(self.open_at(place, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?, place)
    }

    fn content(&self, place: &WorkspacePath, most: u64) -> Result<Option<FileContent>, ToolError> {
        let mut opened = match self.open(place) {
            Ok(opened) => opened,
            Err(error) if error.code == ErrorCode::NotFound => return Ok(None),
            Err(error) => {
                let link = openat2::read_link(self.method, self.root(place)?.directory.as_fd(), &place.bytes());
                let content = |target: Vec<u8>| FileContent { bytes: target.into(), mode: Some(LINK_MODE) };
                return link.map(|target| Some(content(target))).map_err(|_| error);
            }
        };
        if opened.size > most {
            let message =
                format!("`{}` has {}; at most {most} can be taken.", shown(place), counted(opened.size, "byte"));
            return Err(ToolError::new(ErrorCode::FileTooLarge, message));
        }
        let mut bytes = Vec::with_capacity(opened.size as usize + 1);
        opened
            .file
            .read_to_end(&mut bytes)
            .map_err(|error| ToolError::io(&format!("`{}` can't be read", shown(place)), &error))?;
        Ok(Some(FileContent { bytes: bytes.into(), mode: Some(opened.mode) }))
    }

    fn entries(&self, place: &WorkspacePath) -> Result<Vec<DirectoryEntry>, ToolError> {
        let fd = self.open_at(place, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let read = |error| refusal(place, error);
        let mut entries = Vec::new();
        for item in Dir::read_from(&fd).map_err(read)? {
            let item = item.map_err(read)?;
            let name = item.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            // Removed since the directory was read: then it isn't in the list.
            let Ok(stat) = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            entries.push(entry(place, name.to_bytes(), &stat));
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn roots(&self) -> usize {
        self.roots.len()
    }

    fn look(
        &self,
        directory: &WorkspacePath,
        known: Option<&DirectoryStamp>,
        each: &mut dyn FnMut(&str, EntryKind),
    ) -> Result<DirectoryScan, ToolError> {
        let top = self.root(directory)?.directory.as_fd();
        crate::files::read_directory::look(self.method, top, &directory.bytes(), known, each)
            .map_err(|error| refusal(directory, error))
    }

    fn suspend_closed_modes(&self, root: usize, except: &BTreeSet<WorkspacePath>) -> Vec<WorkspacePath> {
        let (mut suspended, mut pending) = (Vec::new(), vec![WorkspacePath { root, path: String::new() }]);
        while let Some(directory) = pending.pop() {
            // Another user owns it, or it has gone.
            let Ok(opened) = self.open_at(&directory, OFlags::PATH | OFlags::DIRECTORY) else { continue };
            if is_closed_to_owner(&opened) && self.suspended_modes.suspend(&directory, &opened).is_ok() {
                suspended.push(directory.clone());
            }
            let inner = self.entries(&directory).unwrap_or_default().into_iter();
            let directories = inner.filter(|entry| entry.kind == EntryKind::Directory).map(|entry| entry.place);
            pending.extend(directories.filter(|directory| !except.contains(directory)));
        }
        suspended
    }

    fn apply(&self, edits: &[FileEdit], id: &str, first: &mut BeforeApply<'_>) -> Result<(), ToolError> {
        let directory = |edit: &FileEdit| self.root(&edit.place).map(|root| root.directory.as_fd());
        let directories = edits.iter().map(directory).collect::<Result<Vec<_>, _>>()?;
        let drafts = crate::files::unnamed_file::write_ahead(self.method, &directories, edits, first)?;
        crate::files::atomic_write::apply(self.method, &directories, edits, drafts, id).map_err(|failure| {
            let place = &edits[failure.index].place;
            match failure.error {
                Errno::ISDIR => ToolError::new(ErrorCode::NotAFile, format!("`{}` is a directory.", shown(place))),
                Errno::NOENT => ToolError::not_found(shown(place)),
                error => ToolError::io(&format!("`{}` can't be changed", shown(place)), &error.into())
                    .with_hint("Nothing was changed. Free disk space or fix the permissions, then try again."),
            }
        })
    }

    fn node(&self, place: &WorkspacePath, hashed: bool) -> Result<Option<FileMetadata>, ToolError> {
        let (parent, name) = place.parent_and_name();
        let name = if name.is_empty() { b"." } else { &*name };
        let root = self.root(place)?.directory.as_fd();
        match openat2::open(self.method, root, &parent, OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            parent => parent
                .and_then(|parent| crate::files::stat::look(parent.as_fd(), name, hashed))
                .map(|found| found.map(|found| self.suspended_modes.as_it_was(place, found)))
                .map_err(|error| refusal(place, error)),
        }
    }

    fn status(&self, place: &WorkspacePath) -> Result<Option<EntryStatus>, ToolError> {
        let Some(node) = self.node(place, false)? else { return Ok(None) };
        let (parent, name) = place.parent_and_name();
        let name = if name.is_empty() { b"." } else { &*name };
        let root = self.root(place)?.directory.as_fd();
        let found = openat2::open(self.method, root, &parent, OFlags::PATH | OFlags::DIRECTORY)
            .and_then(|parent| crate::files::stat::status(parent.as_fd(), name));
        match found {
            Err(Errno::NOENT) => Ok(None),
            found => {
                let found = found.map_err(|error| refusal(place, error))?;
                // A directory may be open to us for a moment only.
                let mode = if found.kind == EntryKind::Directory { node.state.permissions() } else { found.mode };
                Ok(Some(EntryStatus { mode, ..found }))
            }
        }
    }

    fn has_writers(&self, file: &File) -> bool {
        crate::process::syscall::lease::has_writers(file)
    }

    fn write_changes(&self, changes: &[Change], source: &dyn ChangeSource, id: &str) -> Result<(), ToolError> {
        let directory = |change: &Change| self.root(&change.place).map(|root| root.directory.as_fd());
        let directories = changes.iter().map(directory).collect::<Result<Vec<_>, _>>()?;
        crate::files::change_writer::write_changes(self.method, &directories, changes, source, id).map_err(
            |failure| {
                let place = &changes[failure.index].place;
                ToolError::io(&format!("`{}` can't be put in place", shown(place)), &failure.error.into())
            },
        )?;
        for Change { place, after, .. } in changes {
            if let Some(directory) = after.as_ref().filter(|after| after.is_directory()) {
                self.suspended_modes.replace(place, directory.permissions());
            }
        }
        Ok(())
    }

    fn link_or_copy(&self, place: &WorkspacePath, directory: BorrowedFd<'_>, name: &[u8]) -> std::io::Result<()> {
        let (parent, last) = place.parent_and_name();
        let root = self.roots.get(place.root).ok_or(Errno::NOENT)?.directory.as_fd();
        let parent = openat2::open(self.method, root, &parent, OFlags::PATH | OFlags::DIRECTORY)?;
        match rustix::fs::linkat(&parent, &*last, directory, name, AtFlags::empty()) {
            Err(Errno::XDEV | Errno::PERM | Errno::MLINK) => {
                let parent = PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd()));
                let itself = parent.join(OsStr::from_bytes(&last));
                crate::files::copy_across::copy(&itself, directory, name, ".toolgate-copy")
            }
            other => Ok(other?),
        }
    }

    fn suspend_mode(&self, directory: &WorkspacePath) -> Result<(), ToolError> {
        let opened = self.open_at(directory, OFlags::PATH | OFlags::DIRECTORY)?;
        self.suspended_modes.suspend(directory, &opened).map_err(|error| refusal(directory, error))
    }

    fn restore_mode(&self, directory: &WorkspacePath) {
        if let Ok(opened) = self.open_at(directory, OFlags::PATH | OFlags::DIRECTORY) {
            self.suspended_modes.restore(directory, &opened);
        }
    }

    fn is_closed(&self, directory: &WorkspacePath) -> Option<String> {
        let opened = self.open_at(directory, OFlags::PATH | OFlags::DIRECTORY).ok()?;
        let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        let error = rustix::fs::accessat(&opened, ".", wanted, AtFlags::EACCESS).err()?;
        // The owner of a directory can open it.
        let is_ours = rustix::fs::fstat(&opened).is_ok_and(|found| found.st_uid == geteuid().as_raw());
        (error != Errno::ACCESS || !is_ours)
            .then(|| format!("nothing can be changed in `{}`: {}", shown(directory), std::io::Error::from(error)))
    }

    fn umask(&self) -> u32 {
        crate::files::umask::umask()
    }

    fn walk<'v>(
        &self,
        start: &WorkspacePath,
        options: &WalkOptions,
        visitors: &'v VisitorFactory<'v>,
    ) -> Result<u64, ToolError> {
        let walk_root = WalkRoot { method: self.method, root: self.root(start)?.directory.as_fd() };
        walk(walk_root, start, options, visitors)
    }

    fn watch(&self, of: WatchedChanges) -> Option<Box<dyn TreeWatch>> {
        let roots = self.roots.iter().map(|root| root.directory.try_clone()).collect::<Result<_, _>>().ok()?;
        Some(Box::new(DirectoryWatch::new(self.method, roots, of).ok()?))
    }

    fn clear_temporary(&self, places: &[WorkspacePath], id: &str) -> Result<(), ToolError> {
        // The id becomes part of a file name: one from outside must not contain a path.
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(());
        }
        for (index, place) in places.iter().enumerate() {
            let parent = place.path.rsplit_once('/').map_or("", |(parent, _)| parent);
            let parent = WorkspacePath { root: place.root, path: parent.to_owned() };
            let Ok(directory) = self.open_at(&parent, OFlags::PATH | OFlags::DIRECTORY) else { continue };
            for name in [new_name(id, index), old_name(id, index)] {
                match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(refusal(place, error)),
                }
            }
        }
        Ok(())
    }

    fn shown(&self, place: &WorkspacePath) -> String {
        match (place.root, self.roots.get(place.root)) {
            (0, _) | (_, None) => shown(place).to_owned(),
            (_, Some(root)) => escape_path(place.beneath(&root.path).as_os_str().as_bytes()).into_owned(),
        }
    }

    fn holding(&self) -> GuaranteeLevel {
        // The fallback is as safe: each step starts at the descriptor of the one before and follows no symlink.
        GuaranteeLevel::Held
    }
}

/// Whether the mode of a directory keeps us out although it is ours. Root is never kept out.
fn is_closed_to_owner(directory: &OwnedFd) -> bool {
    let user = geteuid();
    rustix::fs::fstat(directory).is_ok_and(|found| {
        !user.is_root() && found.st_uid == user.as_raw() && found.st_mode & Mode::RWXU.as_raw_mode() != 0o700
    })
}

/// The file of a descriptor, if it is a regular file.
pub(crate) fn regular_file(fd: OwnedFd, place: &WorkspacePath) -> Result<OpenFile, ToolError> {
    let stat = rustix::fs::fstat(&fd).map_err(|error| refusal(place, error))?;
    match kind_of(&stat) {
        EntryKind::File => {
            Ok(OpenFile { file: File::from(fd), size: stat.st_size as u64, mode: stat.st_mode & 0o7777 })
        }
        EntryKind::Directory => Err(ToolError::new(ErrorCode::NotAFile, format!("`{}` is a directory.", shown(place)))
            .with_hint("Use `list` to see what is in it.")),
        _ => Err(ToolError::new(
            ErrorCode::NotAFile,
            format!("`{}` is a pipe, socket or device; those are never opened.", shown(place)),
        )),
    }
}

fn entry(directory: &WorkspacePath, name: &[u8], stat: &Stat) -> DirectoryEntry {
    let name = escape_path(name).into_owned();
    DirectoryEntry { place: directory.join(&name), kind: kind_of(stat), size: stat.st_size as u64, name }
}

pub(crate) fn kind_of(stat: &Stat) -> EntryKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

fn shown(place: &WorkspacePath) -> &str {
    if place.path.is_empty() { "." } else { &place.path }
}

/// Turns an error of the kernel into an error of ours.
pub(crate) fn refusal(place: &WorkspacePath, error: Errno) -> ToolError {
    let path = shown(place);
    match error {
        Errno::NOENT => ToolError::not_found(path),
        Errno::NOTDIR => {
            ToolError::new(ErrorCode::NotFound, format!("Nothing exists at `{path}`: a part of it is not a directory."))
        }
        Errno::LOOP => ToolError::new(
            ErrorCode::PathOutsideWorkspace,
            format!("`{path}` goes through a link that changed or leads nowhere; links are resolved only once."),
        ),
        Errno::XDEV => outside(path, "it leads out of its root"),
        // A socket can't be opened at all.
        Errno::NXIO => ToolError::new(ErrorCode::NotAFile, format!("`{path}` is a socket or device.")),
        error => ToolError::io(&format!("`{path}` can't be opened"), &error.into()),
    }
}
