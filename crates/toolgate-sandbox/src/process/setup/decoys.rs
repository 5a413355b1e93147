//! What a command sees in place of the secrets in the workspace. A decoy can be opened, so that a program which loads such a
//! file goes on without it; and the kernel tells of the first time that somebody does.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::super::plan::PinnedPath;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::mount::{self, READ_ONLY};
use super::mounts::{attach_at, copy_tree, make_directory, open_no_links, private_directory};
use super::zygote_main::c_string;

/// Where decoys come from: a directory of their own, which nobody inside can enter.
const DIRECTORY: &CStr = c"/dev/.decoys";

/// What a decoy says, as a comment: most of what loads files with secrets passes over it.
const WORDS: &[u8] = b"# Toolgate keeps this file from commands: it may hold secrets. This is a decoy.\n";

/// Puts a decoy over each secret. The descriptor tells which of them are opened; none if there are none, or if the kernel
/// has no more watches to give.
pub(super) fn place(secrets: &[PinnedPath]) -> Result<Option<OwnedFd>, SetupFault> {
    if secrets.is_empty() {
        return Ok(None);
    }
    // A limit would be of no use: it is read-only before anybody else comes.
    let directory = private_directory(c"000", None).during(SetupStep::PlaceDecoys)?;
    make_directory(DIRECTORY).and_then(|target| attach_at(&directory, &target)).during(SetupStep::PlaceDecoys)?;
    let paths: Vec<CString> = (1..=secrets.len()).map(path).collect();
    paths.iter().try_for_each(|path| make(path)).during(SetupStep::PlaceDecoys)?;
    let watch = match watch(&paths) {
        Err(Errno::MFILE | Errno::NOSPC) => return Ok(None),
        other => other.during(SetupStep::PlaceDecoys)?,
    };
    // What is copied from here on is read-only as well.
    mount::set_one(directory.as_fd(), READ_ONLY).during(SetupStep::PlaceDecoys)?;
    for (secret, path) in secrets.iter().zip(&paths) {
        // What another cover has hidden already needs no decoy.
        let Ok(target) = open_no_links(&secret.path) else { continue };
        let copy = open_no_links(path).and_then(|decoy| copy_tree(&decoy));
        copy.and_then(|copy| attach_at(&copy, &target)).during_on(SetupStep::PlaceDecoys, &secret.path)?;
    }
    Ok(Some(watch))
}

fn path(number: usize) -> CString {
    c_string([DIRECTORY.to_bytes(), format!("/{number}").as_bytes()].concat())
}

fn make(path: &CStr) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o444))?;
    rustix::io::write(&file, WORDS).map(drop)
}

/// Watches each decoy for the first time that it is opened, so that what waits to be told is never more than there are
/// decoys. The host knows them by their numbers.
fn watch(paths: &[CString]) -> Result<OwnedFd, Errno> {
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    for (number, path) in (1..).zip(paths) {
        let given = inotify::add_watch(&watch, path.as_c_str(), WatchFlags::OPEN | WatchFlags::ONESHOT)?;
        // The kernel counts from 1 on. Were it otherwise, the wrong file would be told of.
        if given != number {
            return Err(Errno::BADMSG);
        }
    }
    Ok(watch)
}
