//! What the sandbox sees of the machine: everything read-only, empty directories over what is hidden, what was granted put back
//! on top. Every place is opened once, with no link on the way, compared with what the host saw, and from then on
//! meant by its descriptor.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::super::plan::{NetworkPlan, PinnedPath, SandboxPlan, TmpfsMount};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::mount::{self, NO_DEVICES, NO_SETUID, READ_ONLY};
use super::{decoys, devices, overlay};
use crate::network::NAMESERVER;

/// Where covers of sensitive places come from: an empty file and an empty directory that nobody may open.
const MASKS: [&CStr; 2] = [c"/dev/.masked-file", c"/dev/.masked-directory"];

/// Where the list of nameservers comes from.
const NAMESERVERS: &CStr = c"/dev/.nameservers";

/// What the view has that not every machine gives.
pub(super) struct MountOutcome {
    /// Whether `/proc` is the sandbox's own.
    pub(super) own_proc: bool,
    /// Tells which decoys are opened; none if there are none.
    pub(super) watch: Option<OwnedFd>,
}

/// Builds the whole view.
pub(super) fn build(plan: &SandboxPlan) -> Result<MountOutcome, SetupFault> {
    let root = open_no_links(c"/").during(SetupStep::DetachMounts)?;
    mount::make_private(root.as_fd()).during(SetupStep::DetachMounts)?;
    // Copies are taken while everything is still to be seen and can still be written.
    let shown = copies(&plan.shown)?;
    let writable = writable_copies(plan)?;
    let devices = devices::copies()?;
    mount::set(root.as_fd(), READ_ONLY | NO_SETUID | NO_DEVICES).during(SetupStep::MakeReadOnly)?;
    let proc = own_proc()?;
    if let Some(only) = &plan.only {
        change_root(only, &plan.links)?;
    }
    attach_proc(proc.as_ref())?;
    devices::build(devices, plan.limits.temporary_bytes)?;
    for cover in &plan.covered {
        mount_tmpfs(cover, plan.limits.temporary_bytes)?;
    }
    for (place, copy) in plan.shown.iter().zip(&shown) {
        mount::set(copy.as_fd(), READ_ONLY | NO_SETUID | NO_DEVICES).during_on(SetupStep::AttachRoot, &place.path)?;
    }
    let granted = || plan.shown.iter().zip(&shown).chain(plan.writable.iter().zip(&writable));
    for (place, copy) in granted().filter(|(place, _)| !plan.is_in_a_hollow(place)) {
        attach_creating_target(copy, place)?;
    }
    for cover in &plan.hollow {
        mount_tmpfs(cover, plan.limits.temporary_bytes)?;
    }
    for (place, copy) in granted().filter(|(place, _)| plan.is_in_a_hollow(place)) {
        attach_creating_target(copy, place)?;
    }
    mount_resolv_conf(plan)?;
    protect(plan)?;
    mask(&plan.masked)?;
    let watch = decoys::place(&plan.secret)?;
    if watch.is_none() {
        mask(&plan.secret)?;
    }
    Ok(MountOutcome { own_proc: proc.is_some(), watch })
}

/// Puts a list of nameservers of our own over the machine's. Without one, programs ask their own loopback, and where that
/// list names others, any address leads to the same door; this spares them names that are only known here.
fn mount_resolv_conf(plan: &SandboxPlan) -> Result<(), SetupFault> {
    let NetworkPlan::Listed { nameservers: Some(place), .. } = &plan.network else { return Ok(()) };
    let made = || -> Result<OwnedFd, Errno> {
        let file = make_file(NAMESERVERS)?;
        rustix::io::write(&file, format!("nameserver {NAMESERVER}\n").as_bytes())?;
        let mount = copy_tree(&open_no_links(NAMESERVERS)?)?;
        mount::set(mount.as_fd(), READ_ONLY)?;
        Ok(mount)
    };
    attach_creating_target(&made().during(SetupStep::OpenDoors)?, place)
}

/// What had to be writable until the last moment no longer is. Files of `/proc/sys` belong to root, so as root without
/// this the machine's own settings could be written.
pub(super) fn seal(plan: &SandboxPlan, own_proc: bool) -> Result<(), SetupFault> {
    let mut places: Vec<&CStr> = vec![c"/dev"];
    places.extend(own_proc.then_some(c"/proc"));
    places.extend(plan.only.is_some().then_some(c"/"));
    places.extend(plan.hollow.iter().map(|cover| cover.path.as_c_str()));
    for place in places {
        let mount = open_no_links(place).during_on(SetupStep::MakeReadOnly, place)?;
        seal_one(&mount).during_on(SetupStep::MakeReadOnly, place)?;
    }
    Ok(())
}

/// Makes one mount read-only, and none of those below it.
fn seal_one(mount: &OwnedFd) -> Result<(), Errno> {
    mount::set_one(mount.as_fd(), READ_ONLY)
}

fn copies(places: &[PinnedPath]) -> Result<Vec<OwnedFd>, SetupFault> {
    places.iter().map(copy_of).collect()
}

fn writable_copies(plan: &SandboxPlan) -> Result<Vec<OwnedFd>, SetupFault> {
    let copy = |place: &PinnedPath| {
        let copy = match plan.overlays.iter().find(|overlay| overlay.path == place.path) {
            Some(found) => overlay::mount(found)?,
            None => copy_of(place)?,
        };
        mount::set(copy.as_fd(), NO_SETUID | NO_DEVICES).during_on(SetupStep::OpenRoot, &place.path)?;
        Ok(copy)
    };
    plan.writable.iter().map(copy).collect()
}

/// A copy of the mounts at and below a place, attached nowhere yet. Refused if the place isn't what the host saw there.
fn copy_of(place: &PinnedPath) -> Result<OwnedFd, SetupFault> {
    let opened = open_no_links(&place.path).during_on(SetupStep::OpenRoot, &place.path)?;
    let found = rustix::fs::fstat(&opened).during_on(SetupStep::OpenRoot, &place.path)?;
    if (found.st_dev, found.st_ino) != (place.device, place.inode) {
        return Err(Errno::STALE).during_on(SetupStep::OpenRoot, &place.path);
    }
    copy_tree(&opened).during_on(SetupStep::OpenRoot, &place.path)
}

/// Opens a place with no link anywhere on the way.
pub(super) fn open_no_links(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Copies the mounts at and below what is open.
pub(super) fn copy_tree(opened: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(opened, c"", flags)
}

/// Puts a mount at a place that exists.
pub(super) fn attach(mount: &OwnedFd, path: &CStr) -> Result<(), Errno> {
    attach_at(mount, &open_no_links(path)?)
}

/// Puts a mount at what is open.
pub(super) fn attach_at(mount: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, c"", target, c"", flags)
}

/// Puts a mount at a place that may lie in a covered directory, where it has to be made first.
fn attach_creating_target(mount: &OwnedFd, place: &PinnedPath) -> Result<(), SetupFault> {
    let target = make_mount_point(&place.path, place.directory);
    target.and_then(|target| attach_at(mount, &target)).during_on(SetupStep::AttachRoot, &place.path)
}

/// Opens a place, making what is missing of it. All that can be written here at this time are directories of our own.
pub(super) fn make_mount_point(path: &CStr, directory: bool) -> Result<OwnedFd, Errno> {
    match open_no_links(path) {
        Err(Errno::NOENT) => {}
        other => return other,
    }
    let bytes = path.to_bytes();
    for (at, _) in bytes.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/') {
        match rustix::fs::mkdir(&bytes[..at], Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => {}
            Err(error) => return Err(error),
        }
    }
    if directory { make_directory(path) } else { make_file(path) }
}

/// Makes an empty directory.
pub(super) fn make_directory(path: &CStr) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))?;
    open_no_links(path)
}

/// Makes an empty file.
pub(super) fn make_file(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::from_raw_mode(0o644))
}

/// An empty directory in memory, attached nowhere yet.
pub(super) fn private_directory(mode: &CStr, bytes: Option<u64>) -> Result<OwnedFd, Errno> {
    let kind = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&kind, c"mode", mode)?;
    if let Some(bytes) = bytes {
        fsconfig_set_string(&kind, c"size", bytes.to_string())?;
    }
    fsconfig_create(&kind)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn mount_tmpfs(cover: &TmpfsMount, bytes: Option<u64>) -> Result<(), SetupFault> {
    let mode = if cover.shared { c"1777" } else { c"755" };
    let directory = private_directory(mode, bytes).during_on(SetupStep::MountPrivateDirectory, &cover.path)?;
    let target = make_mount_point(&cover.path, true);
    target.and_then(|target| attach_at(&directory, &target)).during_on(SetupStep::MountPrivateDirectory, &cover.path)
}

/// A `/proc` for our own processes, attached nowhere yet. The kernel refuses one where parts of the host's are covered, as
/// in a container; it also has to see the host's, so this comes before the root is changed.
fn own_proc() -> Result<Option<OwnedFd>, SetupFault> {
    let mounted = || -> Result<OwnedFd, Errno> {
        let kind = fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&kind)?;
        let attributes =
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    match mounted() {
        Ok(proc) => Ok(Some(proc)),
        Err(Errno::PERM) => Ok(None),
        Err(error) => Err(error).during(SetupStep::MountProc),
    }
}

/// Attaches it. If there is none, the host's stays, read-only; or nothing, if only what was granted is to be seen.
fn attach_proc(proc: Option<&OwnedFd>) -> Result<(), SetupFault> {
    let target = make_mount_point(c"/proc", true).during(SetupStep::MountProc)?;
    proc.map_or(Ok(()), |proc| attach_at(proc, &target)).during(SetupStep::MountProc)
}

/// Leaves only what was granted: a new root in memory, with copies of the granted places. The old one goes away.
fn change_root(only: &[PinnedPath], links: &[(std::ffi::CString, std::ffi::CString)]) -> Result<(), SetupFault> {
    let granted = copies(only)?;
    let root = private_directory(c"755", Some(1 << 20)).during(SetupStep::ChangeRoot)?;
    // Any directory does to stand on; the new root covers it only until it becomes the root itself.
    attach(&root, c"/proc").during(SetupStep::ChangeRoot)?;
    rustix::process::fchdir(&root).during(SetupStep::ChangeRoot)?;
    rustix::process::pivot_root(c".", c".").during(SetupStep::ChangeRoot)?;
    rustix::mount::unmount(c".", UnmountFlags::DETACH).during(SetupStep::ChangeRoot)?;
    rustix::process::chdir(c"/").during(SetupStep::ChangeRoot)?;
    for (path, target) in links {
        rustix::fs::symlink(target.as_c_str(), path.as_c_str()).during_on(SetupStep::ChangeRoot, path)?;
    }
    for (place, copy) in only.iter().zip(granted) {
        mount::set(copy.as_fd(), READ_ONLY | NO_SETUID | NO_DEVICES).during_on(SetupStep::ChangeRoot, &place.path)?;
        attach_creating_target(&copy, place)?;
    }
    Ok(())
}

/// Puts read-only copies over protected places. Their parents become mounts too, since those can't be renamed: otherwise
/// `.git` could be moved aside and a new one put in its place.
fn protect(plan: &SandboxPlan) -> Result<(), SetupFault> {
    for (places, attributes) in [(&plan.pinned, 0), (&plan.protected, READ_ONLY)] {
        for place in places {
            let copy = open_no_links(&place.path).and_then(|opened| copy_tree(&opened));
            let copy = copy.during_on(SetupStep::Protect, &place.path)?;
            if attributes != 0 {
                mount::set(copy.as_fd(), attributes).during_on(SetupStep::Protect, &place.path)?;
            }
            attach(&copy, &place.path).during_on(SetupStep::Protect, &place.path)?;
        }
    }
    Ok(())
}

/// Covers sensitive places by something that can't be opened.
fn mask(masked: &[PinnedPath]) -> Result<(), SetupFault> {
    let mut covers = [None, None];
    for place in masked {
        // What another cover has hidden already needs no mask.
        let Ok(target) = open_no_links(&place.path) else { continue };
        let kind = usize::from(place.directory);
        let cover = match &covers[kind] {
            Some(cover) => cover,
            None => covers[kind].insert(make_mask(MASKS[kind], place.directory).during(SetupStep::Mask)?),
        };
        let copy = copy_tree(cover).during_on(SetupStep::Mask, &place.path)?;
        attach_at(&copy, &target).during_on(SetupStep::Mask, &place.path)?;
    }
    Ok(())
}

/// Makes a mask: a mount of its own, so that every copy of it is read-only, and its mode can't be changed back. A directory
/// can be looked into, as programs that walk a tree give up at one that can't; there is nothing in it.
fn make_mask(path: &CStr, directory: bool) -> Result<OwnedFd, Errno> {
    let made = if directory { make_directory(path)? } else { make_file(path)? };
    rustix::fs::chmod(path, if directory { Mode::from_raw_mode(0o555) } else { Mode::empty() })?;
    let mount = copy_tree(&made)?;
    mount::set(mount.as_fd(), READ_ONLY)?;
    attach_at(&mount, &made)?;
    open_no_links(path)
}
