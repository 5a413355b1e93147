//! The sandbox's own `/dev`: harmless devices, a devpts of its own, and a tmpfs for shared memory. A user namespace can't
//! create device files, so those of the host are bind-mounted.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    open_tree,
};

use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::mounts::{MOUNT_POINTS_BYTES, attach_at, make_directory, make_file, make_mount_point, new_tmpfs};

/// Devices that reveal nothing and change nothing.
pub(super) const HARMLESS: [&CStr; 6] =
    [c"/dev/null", c"/dev/zero", c"/dev/full", c"/dev/random", c"/dev/urandom", c"/dev/tty"];

/// Symlinks that programs expect.
const LINKS: [(&CStr, &CStr); 5] = [
    (c"/dev/fd", c"/proc/self/fd"),
    (c"/dev/stdin", c"/proc/self/fd/0"),
    (c"/dev/stdout", c"/proc/self/fd/1"),
    (c"/dev/stderr", c"/proc/self/fd/2"),
    (c"/dev/ptmx", c"pts/ptmx"),
];

/// Detached bind mounts of the host's devices. A device that the host doesn't have is left out.
pub(super) fn copies() -> Result<Vec<(&'static CStr, OwnedFd)>, SetupFault> {
    let mut copies = Vec::with_capacity(HARMLESS.len());
    for path in HARMLESS {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
        match open_tree(rustix::fs::CWD, path, flags) {
            Ok(copy) => copies.push((path, copy)),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error).during_on(SetupStep::MakeDevices, path),
        }
    }
    Ok(copies)
}

/// Builds `/dev`.
pub(super) fn build(devices: Vec<(&'static CStr, OwnedFd)>, bytes: Option<u64>) -> Result<(), SetupFault> {
    let directory = new_tmpfs(c"755", Some(MOUNT_POINTS_BYTES)).during(SetupStep::MakeDevices)?;
    make_mount_point(c"/dev", true).and_then(|target| attach_at(&directory, &target)).during(SetupStep::MakeDevices)?;
    for (path, device) in devices {
        make_file(path).and_then(|target| attach_at(&device, &target)).during_on(SetupStep::MakeDevices, path)?;
    }
    for (path, target) in LINKS {
        rustix::fs::symlink(target, path).during_on(SetupStep::MakeDevices, path)?;
    }
    let shared_memory = new_tmpfs(c"1777", bytes).during_on(SetupStep::MakeDevices, c"/dev/shm")?;
    let devpts = new_devpts().during_on(SetupStep::MakeDevices, c"/dev/pts")?;
    for (path, mount) in [(c"/dev/shm", shared_memory), (c"/dev/pts", devpts)] {
        make_directory(path).and_then(|target| attach_at(&mount, &target)).during_on(SetupStep::MakeDevices, path)?;
    }
    Ok(())
}

/// A detached devpts instance: pseudoterminals that the host doesn't see.
fn new_devpts() -> Result<OwnedFd, Errno> {
    let context = fsopen(c"devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, c"ptmxmode", c"666")?;
    fsconfig_set_string(&context, c"mode", c"620")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
