//! Unnamed files (`O_TMPFILE`): new content is written to disk before it is visible. A draft gets a name when the change is
//! made; a process that is killed before leaves nothing behind.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use toolgate_contract::{FileContent, FileEdit};

use crate::files::openat2;
use crate::files::openat2::OpenMethod;

/// From this size on, writing a file takes much longer than starting a thread.
const LARGE_FILE_BYTES: usize = 256 * 1024;

/// How many drafts there may be: each takes a file descriptor.
const MAX_DRAFTS: usize = 16;

/// A new file's permission bits before the umask.
pub(crate) const USUAL_MODE: Mode = Mode::from_raw_mode(0o666);

/// A file without a name that will replace another, and the state of that other file when the draft was made.
pub(crate) struct UnnamedFile {
    file: File,
    old: ReplacedFile,
    replaced: Stat,
}

/// A file that is about to be replaced. Freeing the blocks of a large file takes longer than a rename. While the file is open,
/// the rename needn't free them; when this is dropped, a thread of its own does.
pub(crate) struct ReplacedFile(Option<OwnedFd>);

impl Drop for ReplacedFile {
    fn drop(&mut self) {
        let old = self.0.take();
        // If no thread can be started, it is freed here.
        drop(std::thread::Builder::new().spawn(move || drop(old)));
    }
}

/// The drafts of some edits, each under its edit's index.
pub(crate) type UnnamedFiles = BTreeMap<usize, UnnamedFile>;

/// Runs `first`, and meanwhile writes large files on another thread. An edit without a draft, for whatever reason, is written
/// when it is made, and fails then if it can't be.
pub(crate) fn write_ahead<E>(
    method: OpenMethod,
    roots: &[BorrowedFd<'_>],
    edits: &[FileEdit],
    first: impl FnOnce() -> Result<(), E>,
) -> Result<UnnamedFiles, E> {
    let large = |edit: &'_ FileEdit| {
        let is_large = |after: &FileContent| after.bytes.len() >= LARGE_FILE_BYTES;
        edit.moved_from.is_none() && edit.after.as_ref().is_some_and(is_large)
    };
    if !edits.iter().any(large) {
        return first().map(|()| UnnamedFiles::new());
    }
    let write_out = || {
        let chosen = edits.iter().enumerate().filter(|(_, edit)| large(edit)).take(MAX_DRAFTS);
        chosen.filter_map(|(index, edit)| Some((index, UnnamedFile::of(method, roots[index], edit)?))).collect()
    };
    std::thread::scope(|scope| {
        let drafting = std::thread::Builder::new().spawn_scoped(scope, write_out);
        first()?;
        Ok(drafting.ok().and_then(|drafting| drafting.join().ok()).unwrap_or_default())
    })
}

impl UnnamedFile {
    /// Writes what one edit replaces a file with.
    fn of(method: OpenMethod, root: BorrowedFd<'_>, FileEdit { place, after, .. }: &FileEdit) -> Option<Self> {
        let content = after.as_ref().filter(|content| !content.is_link())?;
        let (parent, name) = place.parent_and_name();
        let directory = openat2::open(method, root, &parent, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let old = rustix::fs::openat(&directory, &*name, flags, Mode::empty()).ok()?;
        let replaced = rustix::fs::fstat(&old).ok()?;
        if !FileType::from_raw_mode(replaced.st_mode).is_file() {
            return None;
        }
        let mut file = create_unnamed(&directory).ok()?;
        fill(&mut file, content, Some(&replaced), &directory, &name).ok()?;
        Some(Self { file, old: ReplacedFile(Some(old)), replaced })
    }

    /// Whether the file that this was made to replace is unchanged, including its mode, owner and attributes.
    pub(crate) fn fits(&self, there: &Stat) -> bool {
        let identity = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_uid, stat.st_gid);
        let changed = |stat: &Stat| (stat.st_ctime, stat.st_ctime_nsec);
        identity(&self.replaced) == identity(there) && changed(&self.replaced) == changed(there)
    }

    /// Gives the draft a name in the directory, and returns the file that it will replace.
    pub(crate) fn give_name(self, directory: &OwnedFd, name: &str) -> Result<ReplacedFile, Errno> {
        give_name(&self.file, directory, name).map(|()| self.old)
    }
}

/// A file in this directory without a name, if the file system supports `O_TMPFILE`.
pub(crate) fn create_unnamed(directory: &OwnedFd) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    rustix::fs::openat(directory, ".", flags, USUAL_MODE).map(File::from)
}

pub(crate) fn give_name(file: &File, directory: &OwnedFd, name: &str) -> Result<(), Errno> {
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(rustix::fs::CWD, itself, directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// Writes content to disk, with the mode, owner and attributes of the file `name` that it replaces.
pub(crate) fn fill(
    file: &mut File,
    content: &FileContent,
    replaced: Option<&Stat>,
    directory: &OwnedFd,
    name: &[u8],
) -> Result<(), Errno> {
    file.write_all(&content.bytes).map_err(|error| errno(&error))?;
    if let Some(old) = replaced {
        // Only root can change the owner; a new file of an ordinary user is theirs anyway.
        let _ = rustix::fs::fchown(&*file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
        copy_attributes(directory, name, file);
    }
    if let Some(mode) = content.mode.or(replaced.map(|old| old.st_mode & 0o7777)) {
        rustix::fs::fchmod(&*file, Mode::from_raw_mode(mode))?;
    }
    rustix::fs::fsync(&*file)
}

/// Copies extended attributes (access control lists, labels): they belong to the path, not to the content. What the file system
/// refuses is left out.
fn copy_attributes(directory: &OwnedFd, name: &[u8], new: &File) {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(old) = rustix::fs::openat(directory, name, flags, Mode::empty()) else { return };
    let mut names = vec![0; 4096];
    let Ok(length) = rustix::fs::flistxattr(&old, &mut names[..]) else { return };
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 65_536];
        if let Ok(length) = rustix::fs::fgetxattr(&old, name, &mut value[..]) {
            let _ = rustix::fs::fsetxattr(new, name, &value[..length], rustix::fs::XattrFlags::empty());
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use toolgate_contract::{Files, ToolError, WorkspacePath};

    use super::*;
    use crate::Roots;

    /// A directory with a file `a` in it, and the edit that makes it a large one.
    fn scene() -> (tempfile::TempDir, FileEdit) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "old").unwrap();
        let after = FileContent { bytes: vec![b'n'; LARGE_FILE_BYTES].into(), mode: None };
        let place = WorkspacePath { root: 0, path: "a".into() };
        (directory, FileEdit { place, before: None, after: Some(after), moved_from: None })
    }

    fn names(directory: &Path) -> Vec<String> {
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn set_mode(directory: &Path, mode: u32) {
        std::fs::set_permissions(directory.join("a"), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_draft_cannot_be_seen_and_fits_only_the_file_it_was_made_for() {
        let (directory, edit) = scene();
        let root = File::open(directory.path()).unwrap();
        let stat = || rustix::fs::statat(&root, "a", AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let small = FileEdit { after: Some(FileContent { bytes: b"new".to_vec().into(), mode: None }), ..edit.clone() };
        let roots = [root.as_fd(), root.as_fd()];
        let drafts = write_ahead(OpenMethod::probe(), &roots, &[small, edit], || Ok::<_, ()>(())).unwrap();
        assert_eq!(drafts.keys().collect::<Vec<_>>(), [&1], "only what is large is worth a thread");
        assert_eq!(names(directory.path()), ["a"]);
        assert!(drafts[&1].fits(&stat()));
        set_mode(directory.path(), 0o640);
        assert!(!drafts[&1].fits(&stat()));
    }

    #[test]
    fn nothing_changes_when_what_comes_first_fails() {
        let (directory, edit) = scene();
        let roots = Roots::open(directory.path()).unwrap();
        let refused = roots.apply(&[edit], "id", &mut || Err(ToolError::internal("no record")));
        assert_eq!(refused.unwrap_err().message, ToolError::internal("no record").message);
        assert_eq!(names(directory.path()), ["a"]);
        assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"old");
    }

    #[test]
    fn a_file_keeps_the_mode_that_it_has_when_it_is_replaced() {
        for (before, during) in [(0o640, 0o640), (0o640, 0o755)] {
            let (directory, edit) = scene();
            set_mode(directory.path(), before);
            let first = &mut || {
                // By then, or soon, the draft has the mode from before.
                set_mode(directory.path(), during);
                Ok(())
            };
            Roots::open(directory.path()).unwrap().apply(&[edit], "id", first).unwrap();
            let facts = std::fs::metadata(directory.path().join("a")).unwrap();
            assert_eq!((facts.len(), facts.permissions().mode() & 0o7777), (LARGE_FILE_BYTES as u64, during));
            assert_eq!(names(directory.path()), ["a"]);
        }
    }
}
