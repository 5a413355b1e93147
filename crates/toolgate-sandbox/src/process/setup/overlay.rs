//! A writable root whose changes go elsewhere: the command sees them, the root doesn't get them.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
};

use super::super::plan::OverlayMount;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::zygote_main::c_string;

/// Mounts the overlay, attached nowhere yet. `userxattr` keeps its notes in attributes that an ordinary user may set.
pub(super) fn mount(overlay: &OverlayMount) -> Result<OwnedFd, SetupFault> {
    let mounted = || -> Result<OwnedFd, Errno> {
        let kind = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_flag(&kind, c"userxattr")?;
        fsconfig_set_string(&kind, c"lowerdir", escaped(&overlay.path))?;
        fsconfig_set_string(&kind, c"upperdir", overlay.upper.as_c_str())?;
        fsconfig_set_string(&kind, c"workdir", overlay.work.as_c_str())?;
        fsconfig_create(&kind)?;
        fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NODEV)
    };
    mounted().during_on(SetupStep::MountOverlay, &overlay.path)
}

/// A colon would begin the next of several directories.
fn escaped(path: &CStr) -> CString {
    let escape = |byte: &u8| if b":\\".contains(byte) { vec![b'\\', *byte] } else { vec![*byte] };
    c_string(path.to_bytes().iter().flat_map(escape).collect::<Vec<u8>>())
}
