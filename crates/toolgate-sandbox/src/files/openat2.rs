//! Opens a path beneath a directory's descriptor without following symlinks: by `openat2` in one step, or, where the kernel or
//! a seccomp filter refuses that, or the path is longer than the kernel takes, name by name, each from the descriptor before.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use toolgate_contract::{escape_path, unescape_path};

/// By which method files are opened beneath a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMethod {
    /// One `openat2` call.
    Kernel,
    /// Name by name, for kernels and seccomp filters without `openat2`.
    Walk,
}

/// The longest path that the kernel takes in one call, in bytes: `PATH_MAX` without the byte that ends it.
const LONGEST_PATH: usize = 4095;
/// Symlinks that are followed in one resolution before it counts as a loop: `MAXSYMLINKS` of `linux/namei.h`.
const MOST_LINKS: usize = 40;
/// How often `openat2` is tried again: the kernel returns EAGAIN when a rename happened meanwhile.
const MOST_RETRIES: usize = 64;

impl OpenMethod {
    /// Finds out whether the kernel has `openat2`.
    pub fn probe() -> Self {
        match rustix::fs::openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(_) => Self::Kernel,
            Err(_) => Self::Walk,
        }
    }
}

/// Opens `path` beneath `root`. Any symlink, also at the end, is `ELOOP`; a path that leads out is `EXDEV`.
pub(crate) fn open(method: OpenMethod, root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    match method {
        OpenMethod::Kernel if path.len() <= LONGEST_PATH => open_with_openat2(root, path, flags),
        _ => open_by_components(root, path, flags),
    }
}

fn open_with_openat2(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, path, flags | OFlags::CLOEXEC, resolve)
}

/// `openat2`, until no rename on the machine comes between: the kernel then can't tell whether a `..` leads out.
pub(crate) fn openat2<P: Arg + Copy>(
    root: BorrowedFd<'_>,
    path: P,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    for _ in 0..MOST_RETRIES {
        match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

fn open_by_components(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).peekable();
    if names.peek().is_none() {
        return rustix::fs::openat(root, ".", flags | OFlags::CLOEXEC, Mode::empty());
    }
    let mut directory: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        if name == b".." {
            return Err(Errno::XDEV);
        }
        let here = directory.as_ref().map_or(root, |fd| fd.as_fd());
        let last = names.peek().is_none();
        let wanted = if last { flags } else { OFlags::PATH | OFlags::DIRECTORY };
        let opened = rustix::fs::openat(here, name, wanted | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| symlink_or(here, name, error))?;
        if wanted.contains(OFlags::PATH) && is_link(&opened)? {
            return Err(Errno::LOOP);
        }
        if last {
            return Ok(opened);
        }
        directory = Some(opened);
    }
    Err(Errno::NOENT)
}

/// `O_DIRECTORY` on a symlink fails with ENOTDIR; callers need to know that it was a symlink.
fn symlink_or(directory: BorrowedFd<'_>, name: &[u8], error: Errno) -> Errno {
    let link = rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
    if error == Errno::NOTDIR && link { Errno::LOOP } else { error }
}

fn is_link(fd: &OwnedFd) -> Result<bool, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) == FileType::Symlink)
}

/// Finds where `path` leads beneath `root` when symlinks are followed, never above the root. Names that don't exist yet stay
/// as written. `EXDEV` if a symlink leads out.
pub(crate) fn resolve(method: OpenMethod, root: BorrowedFd<'_>, path: &str) -> Result<String, Errno> {
    let mut real: Vec<String> = Vec::new();
    let mut todo: Vec<String> = names_of(path);
    let mut links = 0;
    while let Some(name) = todo.pop() {
        if name == ".." {
            real.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        real.push(name);
        let here = real.join("/");
        match open(method, root, &unescape_path(&here), OFlags::PATH) {
            Ok(_) => {}
            Err(Errno::LOOP) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = follow(method, root, &unescape_path(&here))?;
                real.pop();
                todo.extend(names_of(&target));
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {
                // Nothing exists from here on: the rest stays as written.
                while let Some(name) = todo.pop() {
                    match name.as_str() {
                        ".." => drop(real.pop().ok_or(Errno::XDEV)?),
                        _ => real.push(name),
                    }
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(real.join("/"))
}

/// The names of a path, last first, so that a stack pops them in order.
fn names_of(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|name| !name.is_empty() && *name != ".").map(str::to_owned).collect()
}

/// A path's directory and its last name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// The target of the symlink at `path`.
pub(crate) fn read_link(method: OpenMethod, root: BorrowedFd<'_>, path: &[u8]) -> Result<Vec<u8>, Errno> {
    let (directory, name) = split(path);
    let directory = open(method, root, directory, OFlags::PATH | OFlags::DIRECTORY)?;
    Ok(rustix::fs::readlinkat(&directory, name, Vec::new())?.into_bytes())
}

/// Where the symlink at `path` leads; an absolute one leads out of the root.
fn follow(method: OpenMethod, root: BorrowedFd<'_>, path: &[u8]) -> Result<String, Errno> {
    let target = read_link(method, root, path)?;
    if target.starts_with(b"/") { Err(Errno::XDEV) } else { Ok(escape_path(&target).into_owned()) }
}

#[cfg(test)]
mod tests {
    use toolgate_contract::{Files, WalkOptions, WalkStep, WorkspacePath};

    use crate::Roots;

    #[test]
    fn a_path_that_is_longer_than_the_kernel_takes_is_a_path_like_others() {
        let directory = tempfile::tempdir().unwrap();
        let name = "n".repeat(200);
        let script = format!("for i in $(seq 25); do mkdir {name} && cd {name}; done; echo deep > f");
        let mut bash = std::process::Command::new("bash");
        assert!(bash.args(["-c", &script]).current_dir(directory.path()).status().unwrap().success());
        let roots = Roots::open(directory.path()).unwrap();
        let deepest = WorkspacePath::in_workspace(vec![name; 25].join("/"));
        let file = deepest.join("f");
        assert!(file.path.len() > 4096);
        assert_eq!(roots.entries(&deepest).unwrap()[0].place, file);
        assert_eq!(&*roots.content(&file, 100).unwrap().unwrap().bytes, b"deep\n");
        assert_eq!(roots.node(&file, true).unwrap().unwrap().state.bytes, 5);
        let found = parking_lot::Mutex::new(Vec::new());
        let visitors = || -> toolgate_contract::Visitor<'_> {
            Box::new(|walked| {
                found.lock().push(walked.place.clone());
                WalkStep::On
            })
        };
        let root = WorkspacePath::in_workspace("");
        assert_eq!(roots.walk(&root, &WalkOptions::default(), &visitors).unwrap(), 0);
        assert!(found.into_inner().contains(&file));
        // The standard library can't remove it.
        let clear = format!("rm -rf {}/*", directory.path().display());
        std::process::Command::new("bash").args(["-c", &clear]).status().unwrap();
    }
}
