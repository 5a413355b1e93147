//! Substitutes of a command that works in place: files of a tmpfs that are mounted over files of the workspace, such as the
//! committed version over a hidden file. Where changes are staged, substitutes are in the upper directory of the overlay instead.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use rustix::fs::{CWD, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::super::plan::SubstituteMount;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::mount::{self, READ_ONLY};
use super::mounts::{attach_at, copy_tree, make_directory, new_tmpfs, open_no_links};
use super::zygote_main::c_string;

/// The tmpfs that holds the substitutes. Nobody inside can enter it.
const DIRECTORY: &CStr = c"/dev/.substitutes";

/// Mounts each substitute over its file, read-only.
pub(super) fn mount(substitutes: &[SubstituteMount]) -> Result<(), SetupFault> {
    if substitutes.is_empty() {
        return Ok(());
    }
    // It needs no limit: it is read-only before a command runs.
    let directory = new_tmpfs(c"000", None).during(SetupStep::MountSubstitutes)?;
    make_directory(DIRECTORY).and_then(|target| attach_at(&directory, &target)).during(SetupStep::MountSubstitutes)?;
    let paths: Vec<CString> = (1..=substitutes.len()).map(path).collect();
    for (substitute, path) in substitutes.iter().zip(&paths) {
        make(path, substitute).during_on(SetupStep::MountSubstitutes, &substitute.place.path)?;
    }
    // Bind mounts made from here on are read-only as well.
    mount::set_one(directory.as_fd(), READ_ONLY).during(SetupStep::MountSubstitutes)?;
    for (substitute, path) in substitutes.iter().zip(&paths) {
        // What is gone, or hidden by a tmpfs already, needs no substitute.
        let Ok(target) = open_no_links(&substitute.place.path) else { continue };
        let copy = open_no_links(path).and_then(|made| copy_tree(&made));
        let mounted = copy.and_then(|copy| attach_at(&copy, &target));
        mounted.during_on(SetupStep::MountSubstitutes, &substitute.place.path)?;
    }
    Ok(())
}

fn path(number: usize) -> CString {
    c_string([DIRECTORY.to_bytes(), format!("/{number}").as_bytes()].concat())
}

fn make(path: &CStr, substitute: &SubstituteMount) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    let mut rest = substitute.content.as_slice();
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode(substitute.mode & 0o777))?;
    if let Some(seconds) = substitute.modified {
        let time = Timespec { tv_sec: seconds.into(), tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::empty())?;
    }
    Ok(())
}
