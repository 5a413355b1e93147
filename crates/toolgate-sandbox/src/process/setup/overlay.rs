//! overlayfs over a writable root: the command's changes go to the upper directory, and the root, the lower directory, stays
//! as it is.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
};

use super::super::plan::OverlayMount;
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::zygote_main::c_string;

/// A detached overlayfs mount. With `userxattr` its metadata is in `user.*` extended attributes, which need no privilege.
pub(super) fn mount(overlay: &OverlayMount) -> Result<OwnedFd, SetupFault> {
    let mounted = || -> Result<OwnedFd, Errno> {
        let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_flag(&context, c"userxattr")?;
        // Nothing is synced before settling syncs it: otherwise every file that is copied into the upper directory would be. Before
        // Linux 5.10 overlayfs doesn't know this.
        let _ = fsconfig_set_flag(&context, c"volatile");
        fsconfig_set_string(&context, c"lowerdir", escaped(&overlay.path))?;
        fsconfig_set_string(&context, c"upperdir", overlay.upper.as_c_str())?;
        fsconfig_set_string(&context, c"workdir", overlay.work.as_c_str())?;
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NODEV)
    };
    mounted().during_on(SetupStep::MountOverlay, &overlay.path)
}

/// A colon separates several lower directories, so it is escaped.
fn escaped(path: &CStr) -> CString {
    let escape = |byte: &u8| if b":\\".contains(byte) { vec![b'\\', *byte] } else { vec![*byte] };
    c_string(path.to_bytes().iter().flat_map(escape).collect::<Vec<u8>>())
}
