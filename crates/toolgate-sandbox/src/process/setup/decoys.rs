//! Decoys: what a command sees in place of the secrets in the workspace. A decoy can be opened, so a program that loads such a
//! file still works, and inotify tells of the first time that it is opened.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use toolgate_contract::DECOY_CONTENT;

use super::super::plan::PinnedPath;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::mount::{self, READ_ONLY};
use super::mounts::{attach_at, copy_tree, make_directory, new_tmpfs, open_no_links};
use super::zygote_main::c_string;

/// The tmpfs that holds the decoys. Nobody inside can enter it.
const DIRECTORY: &CStr = c"/dev/.decoys";

/// Mounts a decoy over each secret. The inotify descriptor tells which of them are opened. `None` if there are no secrets, or
/// no inotify watches left.
pub(super) fn place(secrets: &[PinnedPath]) -> Result<Option<OwnedFd>, SetupFault> {
    if secrets.is_empty() {
        return Ok(None);
    }
    // It needs no limit: it is read-only before a command runs.
    let directory = new_tmpfs(c"000", None).during(SetupStep::PlaceDecoys)?;
    make_directory(DIRECTORY).and_then(|target| attach_at(&directory, &target)).during(SetupStep::PlaceDecoys)?;
    let paths: Vec<CString> = (1..=secrets.len()).map(path).collect();
    paths.iter().try_for_each(|path| make(path)).during(SetupStep::PlaceDecoys)?;
    let watch = match watch(&paths) {
        Err(Errno::MFILE | Errno::NOSPC) => return Ok(None),
        other => other.during(SetupStep::PlaceDecoys)?,
    };
    // Bind mounts made from here on are read-only as well.
    mount::set_one(directory.as_fd(), READ_ONLY).during(SetupStep::PlaceDecoys)?;
    for (secret, path) in secrets.iter().zip(&paths) {
        // What a tmpfs hides already needs no decoy.
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
    rustix::io::write(&file, DECOY_CONTENT).map(drop)
}

/// Watches each decoy until it is opened for the first time, so the event queue can't overflow. The host knows the decoys by
/// the numbers of their watches.
fn watch(paths: &[CString]) -> Result<OwnedFd, Errno> {
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    for (number, path) in (1..).zip(paths) {
        let given = inotify::add_watch(&watch, path.as_c_str(), WatchFlags::OPEN | WatchFlags::ONESHOT)?;
        // The kernel counts watches from 1. Otherwise the host would report the wrong file.
        if given != number {
            return Err(Errno::BADMSG);
        }
    }
    Ok(watch)
}
