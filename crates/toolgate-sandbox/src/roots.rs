//! The folders that tools may touch, each held open. Every access starts from a root's descriptor.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use toolgate_contract::{
    Access, Change, Content, Edit, Effect, Entry, EntryKind, ErrorCode, Files, First, Holding, LINK_MODE, Located,
    Looked, Mark, Node, Opened, Place, Source, ToolError, Visitors, WalkOptions,
};

use crate::apply::{new_name, old_name};
use crate::beneath::{self, OpenWay};
use crate::locate::{lexical, outside};
use crate::walk::{Ground, walk};

/// What may be done beneath a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootAccess {
    /// Looking only.
    Read,
    /// Looking and changing.
    Write,
}

/// A root couldn't be opened.
#[derive(Debug, thiserror::Error)]
#[error("The folder {} can't be used as a root: {error}. Check that it exists and that you may enter it.", path.display())]
pub struct RootsError {
    path: PathBuf,
    error: Errno,
}

/// The workspace and the other folders that were configured beside it.
#[derive(Debug)]
pub struct Roots {
    roots: Vec<Root>,
    way: OpenWay,
}

#[derive(Debug)]
struct Root {
    /// Absolute, with no links in it: what the descriptor itself says.
    path: PathBuf,
    folder: OwnedFd,
    access: RootAccess,
}

impl Roots {
    /// Opens the workspace, which is writable, as the first root.
    pub fn open(workspace: &Path) -> Result<Self, RootsError> {
        let mut roots = Self { roots: Vec::new(), way: OpenWay::probe() };
        roots.add(workspace, RootAccess::Write)?;
        Ok(roots)
    }

    /// Opens one more root.
    pub fn add(&mut self, path: &Path, access: RootAccess) -> Result<(), RootsError> {
        let fault = |error| RootsError { path: path.to_owned(), error };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let real = std::fs::canonicalize(path)
            .map_err(|error| fault(Errno::from_raw_os_error(error.raw_os_error().unwrap_or_default())))?;
        let folder = rustix::fs::openat(CWD, &real, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(fault)?;
        self.roots.push(Root { path: real, folder, access });
        Ok(())
    }

    /// Forces a way of opening, so that tests can show the fallback at work.
    #[must_use]
    pub fn with_way(mut self, way: OpenWay) -> Self {
        self.way = way;
        self
    }

    /// How opens are kept beneath the roots.
    pub fn way(&self) -> OpenWay {
        self.way
    }

    /// The workspace's folder, absolute, with no links in it.
    pub fn workspace(&self) -> &Path {
        &self.roots[0].path
    }

    fn open_at(&self, place: &Place, flags: OFlags) -> Result<OwnedFd, ToolError> {
        let root = self.root(place)?;
        beneath::open(self.way, root.folder.as_fd(), &place.path, flags).map_err(|error| refusal(place, error))
    }

    fn root(&self, place: &Place) -> Result<&Root, ToolError> {
        self.roots.get(place.root).ok_or_else(|| ToolError::internal(format!("There is no root {}.", place.root)))
    }

    /// Where one effect's path leads; `itself` leaves a link at its end alone.
    fn locate_one(&self, effect: Effect, itself: bool) -> Result<Located, ToolError> {
        let Some((access, path)) = effect.path() else { return Ok(Located::nowhere(effect)) };
        let paths: Vec<&Path> = self.roots.iter().map(|root| root.path.as_path()).collect();
        let written = lexical(&paths, path)?;
        if access > Access::Read && self.root(&written)?.access == RootAccess::Read {
            return Err(ToolError::new(ErrorCode::PolicyDenied, format!("`{path}` is in a root that is read-only.")));
        }
        let real = self.real(&written, itself).map_err(|error| match error {
            Errno::XDEV => outside(path, "a link on the way leads out of its root"),
            error => refusal(&written, error),
        })?;
        Ok(Located { effect, written: Some(written), real: Some(real) })
    }

    /// Where links lead. Of what is meant `itself` only the folder is resolved.
    fn real(&self, written: &Place, itself: bool) -> Result<Place, Errno> {
        let folder = self.roots[written.root].folder.as_fd();
        let path = match (itself, written.path.rsplit_once('/')) {
            _ if self.is_plain(written) => written.path.clone(),
            (true, Some((parent, name))) => match beneath::resolve(self.way, folder, parent)?.as_str() {
                "" => name.to_owned(),
                parent => format!("{parent}/{name}"),
            },
            (true, None) => written.path.clone(),
            _ => beneath::resolve(self.way, folder, &written.path)?,
        };
        Ok(Place { root: written.root, path })
    }

    /// Whether the path exists with no link on the way: the common case, one look. A name in the root itself has no way.
    fn is_plain(&self, written: &Place) -> bool {
        let root = self.roots[written.root].folder.as_fd();
        match written.path.contains('/') || written.path.is_empty() {
            true => beneath::open(self.way, root, &written.path, OFlags::PATH).is_ok(),
            false => rustix::fs::statat(root, &written.path, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| kind_of(&stat) != EntryKind::Link),
        }
    }
}

impl Files for Roots {
    fn locate(&self, effects: Vec<Effect>) -> Result<Vec<Located>, ToolError> {
        let paths = effects.iter().filter_map(Effect::path);
        let removed: BTreeSet<String> =
            paths.filter(|(access, _)| *access == Access::Delete).map(|(_, path)| path.to_owned()).collect();
        let locate = |effect: Effect| {
            let is_restored = matches!(effect, Effect::Restore { .. });
            let itself = is_restored || effect.path().is_some_and(|(_, path)| removed.contains(path));
            self.locate_one(effect, itself)
        };
        effects.into_iter().map(locate).collect()
    }

    fn open(&self, place: &Place) -> Result<Opened, ToolError> {
        // Never waits: a pipe or device is opened without blocking and then refused.
        regular_file(self.open_at(place, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?, place)
    }

    fn content(&self, place: &Place, most: u64) -> Result<Option<Content>, ToolError> {
        let mut opened = match self.open(place) {
            Ok(opened) => opened,
            Err(error) if error.code == ErrorCode::NotFound => return Ok(None),
            Err(error) => {
                let link = beneath::read_link(self.way, self.root(place)?.folder.as_fd(), &place.path);
                let content = |target: Vec<u8>| Content { bytes: target.into(), mode: Some(LINK_MODE) };
                return link.map(|target| Some(content(target))).map_err(|_| error);
            }
        };
        if opened.size > most {
            let message = format!("`{}` has {} bytes; at most {most} can be taken.", shown(place), opened.size);
            return Err(ToolError::new(ErrorCode::FileTooLarge, message));
        }
        let mut bytes = Vec::with_capacity(opened.size as usize + 1);
        opened
            .file
            .read_to_end(&mut bytes)
            .map_err(|error| ToolError::io(&format!("`{}` can't be read", shown(place)), &error))?;
        Ok(Some(Content { bytes: bytes.into(), mode: Some(opened.mode) }))
    }

    fn entries(&self, place: &Place) -> Result<Vec<Entry>, ToolError> {
        let fd = self.open_at(place, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let read = |error| refusal(place, error);
        let mut entries = Vec::new();
        for item in Dir::read_from(&fd).map_err(read)? {
            let item = item.map_err(read)?;
            let name = item.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            // Gone since the folder was read: then it isn't in the list.
            let Ok(stat) = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            entries.push(entry(place, OsString::from_vec(name.to_bytes().to_vec()), &stat));
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn roots(&self) -> usize {
        self.roots.len()
    }

    fn look(
        &self,
        root: usize,
        folder: &Path,
        known: Option<&Mark>,
        each: &mut dyn FnMut(&OsStr, EntryKind),
    ) -> Result<Looked, ToolError> {
        let path = folder.as_os_str().as_bytes();
        let top = self.roots.get(root).ok_or(Errno::NOENT);
        let looked = top.and_then(|top| crate::look::look(self.way, top.folder.as_fd(), path, known, each));
        looked.map_err(|error| refusal(&Place { root, path: readable(path) }, error))
    }

    fn open_up(&self, root: usize, except: &BTreeSet<Place>) -> Result<(), ToolError> {
        let top = Place { root, path: String::new() };
        let except = except.iter().filter(|place| place.root == root).map(|place| place.path.as_bytes()).collect();
        crate::open_up::folders(self.way, self.root(&top)?.folder.as_fd(), &except)
            .map_err(|error| refusal(&top, error))
    }

    fn apply(&self, edits: &[Edit], id: &str, first: &mut First<'_>) -> Result<(), ToolError> {
        let folder = |edit: &Edit| self.root(&edit.place).map(|root| root.folder.as_fd());
        let folders = edits.iter().map(folder).collect::<Result<Vec<_>, _>>()?;
        let drafts = crate::draft::meanwhile(self.way, &folders, edits, first)?;
        crate::apply::apply(self.way, &folders, edits, drafts, id).map_err(|failure| {
            let place = &edits[failure.index].place;
            match failure.error {
                Errno::ISDIR => ToolError::new(ErrorCode::NotAFile, format!("`{}` is a folder.", shown(place))),
                Errno::NOENT => ToolError::not_found(shown(place)),
                error => ToolError::io(&format!("`{}` can't be changed", shown(place)), &error.into())
                    .with_hint("Nothing was changed. Free disk space or mend the permissions, then try again."),
            }
        })
    }

    fn node(&self, place: &Place, hashed: bool) -> Result<Option<Node>, ToolError> {
        let (parent, name) = place.path.rsplit_once('/').unwrap_or(("", &place.path));
        let name = if name.is_empty() { "." } else { name };
        let root = self.root(place)?.folder.as_fd();
        match beneath::open(self.way, root, parent, OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            parent => parent
                .and_then(|parent| crate::node::look(parent.as_fd(), name, hashed))
                .map_err(|error| refusal(place, error)),
        }
    }

    fn has_writers(&self, opened: &Opened) -> bool {
        crate::process::kernel::lease::has_writers(&opened.file)
    }

    fn arrange(&self, changes: &[Change], source: &dyn Source, id: &str) -> Result<(), ToolError> {
        let folder = |change: &Change| self.root(&change.place).map(|root| root.folder.as_fd());
        let folders = changes.iter().map(folder).collect::<Result<Vec<_>, _>>()?;
        crate::arrange::arrange(self.way, &folders, changes, source, id).map_err(|failure| {
            let place = &changes[failure.index].place;
            ToolError::io(&format!("`{}` can't be put in place", shown(place)), &failure.error.into())
        })
    }

    fn name_again(&self, place: &Place, folder: BorrowedFd<'_>, name: &str) -> std::io::Result<()> {
        let (parent, last) = place.path.rsplit_once('/').unwrap_or(("", &place.path));
        let root = self.roots.get(place.root).ok_or(Errno::NOENT)?.folder.as_fd();
        let parent = beneath::open(self.way, root, parent, OFlags::PATH | OFlags::DIRECTORY)?;
        match rustix::fs::linkat(&parent, last, folder, name, AtFlags::empty()) {
            Err(Errno::XDEV | Errno::PERM | Errno::MLINK) => {
                let itself = PathBuf::from(format!("/proc/self/fd/{}/{last}", parent.as_raw_fd()));
                crate::apart::copy(&itself, folder, name, name)
            }
            other => Ok(other?),
        }
    }

    fn touch(&self, place: &Place, modified: Timestamp) -> Result<(), ToolError> {
        let time = rustix::fs::Timespec {
            tv_sec: modified.as_second(),
            tv_nsec: i64::from(modified.subsec_nanosecond()) as _,
        };
        let unchanged = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let times = rustix::fs::Timestamps { last_access: unchanged, last_modification: time };
        let (parent, name) = place.path.rsplit_once('/').unwrap_or(("", &place.path));
        let parent = Place { root: place.root, path: parent.to_owned() };
        let folder = self.open_at(&parent, OFlags::PATH | OFlags::DIRECTORY)?;
        rustix::fs::utimensat(&folder, name, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| refusal(place, error))
    }

    fn walk<'v>(&self, start: &Place, options: &WalkOptions, visitors: &'v Visitors<'v>) -> Result<u64, ToolError> {
        let ground = Ground { way: self.way, root: self.root(start)?.folder.as_fd() };
        walk(ground, start, options, visitors)
    }

    fn clear_temporary(&self, places: &[Place], id: &str) -> Result<(), ToolError> {
        // The id becomes part of a name: one that came from elsewhere must not lead anywhere else.
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(());
        }
        for (index, place) in places.iter().enumerate() {
            let parent = place.path.rsplit_once('/').map_or("", |(parent, _)| parent);
            let parent = Place { root: place.root, path: parent.to_owned() };
            let Ok(folder) = self.open_at(&parent, OFlags::PATH | OFlags::DIRECTORY) else { continue };
            for name in [new_name(id, index), old_name(id, index)] {
                match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(refusal(place, error)),
                }
            }
        }
        Ok(())
    }

    fn remove_empty_folders(&self, folder: &Place) -> Result<(), ToolError> {
        for entry in self.entries(folder)?.iter().filter(|entry| entry.kind == EntryKind::Folder) {
            self.remove_empty_folders(&entry.place)?;
        }
        let (parent, name) = folder.path.rsplit_once('/').unwrap_or(("", &folder.path));
        if name.is_empty() {
            return Err(ToolError::new(ErrorCode::PolicyDenied, "A root itself is never removed."));
        }
        let parent = Place { root: folder.root, path: parent.to_owned() };
        let opened = self.open_at(&parent, OFlags::PATH | OFlags::DIRECTORY)?;
        rustix::fs::unlinkat(&opened, name, AtFlags::REMOVEDIR).map_err(|error| refusal(folder, error))
    }

    fn shown(&self, place: &Place) -> String {
        match (place.root, self.roots.get(place.root)) {
            (0, _) | (_, None) => shown(place).to_owned(),
            (_, Some(root)) => root.path.join(&place.path).to_string_lossy().into_owned(),
        }
    }

    fn holding(&self) -> Holding {
        // The walk holds too: each step starts at the descriptor of the one before and follows no link.
        Holding::Held
    }
}

/// The file behind a descriptor, if it is a regular one.
pub(crate) fn regular_file(fd: OwnedFd, place: &Place) -> Result<Opened, ToolError> {
    let stat = rustix::fs::fstat(&fd).map_err(|error| refusal(place, error))?;
    match kind_of(&stat) {
        EntryKind::File => Ok(Opened { file: File::from(fd), size: stat.st_size as u64, mode: stat.st_mode & 0o7777 }),
        EntryKind::Folder => Err(ToolError::new(ErrorCode::NotAFile, format!("`{}` is a folder.", shown(place)))
            .with_hint("Use `list` to see what is in it.")),
        _ => Err(ToolError::new(
            ErrorCode::NotAFile,
            format!("`{}` is a pipe, socket or device; those are never opened.", shown(place)),
        )),
    }
}

fn entry(folder: &Place, name: OsString, stat: &Stat) -> Entry {
    let name = readable(name.as_bytes());
    let path = if folder.path.is_empty() { name.clone() } else { format!("{}/{name}", folder.path) };
    Entry { place: Place { root: folder.root, path }, kind: kind_of(stat), size: stat.st_size as u64, name }
}

/// A name as text; bytes that aren't UTF-8 are shown as `\xNN`.
pub(crate) fn readable(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.utf8_chunks().fold(String::new(), |mut text, chunk| {
            text.push_str(chunk.valid());
            chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
            text
        }),
    }
}

pub(crate) fn kind_of(stat: &Stat) -> EntryKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

fn shown(place: &Place) -> &str {
    if place.path.is_empty() { "." } else { &place.path }
}

/// The kernel's refusal in our words.
pub(crate) fn refusal(place: &Place, error: Errno) -> ToolError {
    let path = shown(place);
    match error {
        Errno::NOENT => ToolError::not_found(path),
        Errno::NOTDIR => {
            ToolError::new(ErrorCode::NotFound, format!("Nothing exists at `{path}`: a part of it is not a folder."))
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
