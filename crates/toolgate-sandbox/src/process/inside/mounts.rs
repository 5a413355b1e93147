//! What the sandbox sees of the machine: everything read-only, empty folders over what is hidden, what was granted put back
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

use super::super::kernel::mount_attributes::{self, NO_DEVICES, NO_SETUID, READ_ONLY};
use super::super::plan::{Cover, Place, Plan, Wiring};
use super::super::step::{During, Fault, Step};
use super::{decoys, devices, overlay};
use crate::network::NAMESERVER;

/// Where covers of sensitive places come from: an empty file and an empty folder that nobody may open.
const MASKS: [&CStr; 2] = [c"/dev/.masked-file", c"/dev/.masked-folder"];

/// Where the list of nameservers comes from.
const NAMESERVERS: &CStr = c"/dev/.nameservers";

/// What the view has that not every machine gives.
pub(super) struct View {
    /// Whether `/proc` is the sandbox's own.
    pub(super) own_proc: bool,
    /// Tells which decoys are opened; none if there are none.
    pub(super) watch: Option<OwnedFd>,
}

/// Builds the whole view.
pub(super) fn build(plan: &Plan) -> Result<View, Fault> {
    let root = open_no_links(c"/").during(Step::DetachMounts)?;
    mount_attributes::make_private(root.as_fd()).during(Step::DetachMounts)?;
    // Copies are taken while everything is still to be seen and can still be written.
    let shown = copies(&plan.shown)?;
    let writable = writable_copies(plan)?;
    let devices = devices::copies()?;
    mount_attributes::set(root.as_fd(), READ_ONLY | NO_SETUID | NO_DEVICES).during(Step::MakeReadOnly)?;
    let proc = own_proc()?;
    if let Some(only) = &plan.only {
        change_root(only, &plan.links)?;
    }
    attach_proc(proc.as_ref())?;
    devices::build(devices, plan.limits.temporary_bytes)?;
    for cover in &plan.covered {
        cover_up(cover, plan.limits.temporary_bytes)?;
    }
    for (place, copy) in plan.shown.iter().zip(&shown) {
        mount_attributes::set(copy.as_fd(), READ_ONLY | NO_SETUID | NO_DEVICES)
            .during_on(Step::AttachRoot, &place.path)?;
    }
    let granted = || plan.shown.iter().zip(&shown).chain(plan.writable.iter().zip(&writable));
    for (place, copy) in granted().filter(|(place, _)| !plan.is_in_a_hollow(place)) {
        attach_making_room(copy, place)?;
    }
    for cover in &plan.hollow {
        cover_up(cover, plan.limits.temporary_bytes)?;
    }
    for (place, copy) in granted().filter(|(place, _)| plan.is_in_a_hollow(place)) {
        attach_making_room(copy, place)?;
    }
    name_nameserver(plan)?;
    protect(plan)?;
    mask(&plan.masked)?;
    let watch = decoys::place(&plan.secret)?;
    if watch.is_none() {
        mask(&plan.secret)?;
    }
    Ok(View { own_proc: proc.is_some(), watch })
}

/// Puts a list of nameservers of our own over the machine's. Without one, programs ask their own loopback, and where that
/// list names others, any address leads to the same door; this spares them names that are only known here.
fn name_nameserver(plan: &Plan) -> Result<(), Fault> {
    let Wiring::Listed { nameservers: Some(place), .. } = &plan.network else { return Ok(()) };
    let made = || -> Result<OwnedFd, Errno> {
        let file = make_file(NAMESERVERS)?;
        rustix::io::write(&file, format!("nameserver {NAMESERVER}\n").as_bytes())?;
        let mount = copy_tree(&open_no_links(NAMESERVERS)?)?;
        mount_attributes::set(mount.as_fd(), READ_ONLY)?;
        Ok(mount)
    };
    attach_making_room(&made().during(Step::OpenDoors)?, place)
}

/// What had to be writable until the last moment no longer is. Files of `/proc/sys` belong to root, so as root without
/// this the machine's own settings could be written.
pub(super) fn seal(plan: &Plan, own_proc: bool) -> Result<(), Fault> {
    let mut places: Vec<&CStr> = vec![c"/dev"];
    places.extend(own_proc.then_some(c"/proc"));
    places.extend(plan.only.is_some().then_some(c"/"));
    places.extend(plan.hollow.iter().map(|cover| cover.path.as_c_str()));
    for place in places {
        let mount = open_no_links(place).during_on(Step::MakeReadOnly, place)?;
        seal_one(&mount).during_on(Step::MakeReadOnly, place)?;
    }
    Ok(())
}

/// Makes one mount read-only, and none of those below it.
fn seal_one(mount: &OwnedFd) -> Result<(), Errno> {
    mount_attributes::set_one(mount.as_fd(), READ_ONLY)
}

fn copies(places: &[Place]) -> Result<Vec<OwnedFd>, Fault> {
    places.iter().map(copy_of).collect()
}

fn writable_copies(plan: &Plan) -> Result<Vec<OwnedFd>, Fault> {
    let copy = |place: &Place| {
        let copy = match plan.overlays.iter().find(|overlay| overlay.path == place.path) {
            Some(found) => overlay::mount(found)?,
            None => copy_of(place)?,
        };
        mount_attributes::set(copy.as_fd(), NO_SETUID | NO_DEVICES).during_on(Step::OpenRoot, &place.path)?;
        Ok(copy)
    };
    plan.writable.iter().map(copy).collect()
}

/// A copy of the mounts at and below a place, attached nowhere yet. Refused if the place isn't what the host saw there.
fn copy_of(place: &Place) -> Result<OwnedFd, Fault> {
    let opened = open_no_links(&place.path).during_on(Step::OpenRoot, &place.path)?;
    let found = rustix::fs::fstat(&opened).during_on(Step::OpenRoot, &place.path)?;
    if (found.st_dev, found.st_ino) != (place.device, place.inode) {
        return Err(Errno::STALE).during_on(Step::OpenRoot, &place.path);
    }
    copy_tree(&opened).during_on(Step::OpenRoot, &place.path)
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

/// Puts a mount at a place that may lie in a covered folder, where it has to be made first.
fn attach_making_room(mount: &OwnedFd, place: &Place) -> Result<(), Fault> {
    let target = make_room(&place.path, place.folder);
    target.and_then(|target| attach_at(mount, &target)).during_on(Step::AttachRoot, &place.path)
}

/// Opens a place, making what is missing of it. All that can be written here at this time are folders of our own.
pub(super) fn make_room(path: &CStr, folder: bool) -> Result<OwnedFd, Errno> {
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
    if folder { make_folder(path) } else { make_file(path) }
}

/// Makes an empty folder.
pub(super) fn make_folder(path: &CStr) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))?;
    open_no_links(path)
}

/// Makes an empty file.
pub(super) fn make_file(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::from_raw_mode(0o644))
}

/// An empty folder in memory, attached nowhere yet.
pub(super) fn private_folder(mode: &CStr, bytes: Option<u64>) -> Result<OwnedFd, Errno> {
    let kind = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&kind, c"mode", mode)?;
    if let Some(bytes) = bytes {
        fsconfig_set_string(&kind, c"size", bytes.to_string())?;
    }
    fsconfig_create(&kind)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn cover_up(cover: &Cover, bytes: Option<u64>) -> Result<(), Fault> {
    let mode = if cover.shared { c"1777" } else { c"755" };
    let folder = private_folder(mode, bytes).during_on(Step::MountPrivateFolder, &cover.path)?;
    let target = make_room(&cover.path, true);
    target.and_then(|target| attach_at(&folder, &target)).during_on(Step::MountPrivateFolder, &cover.path)
}

/// A `/proc` for our own processes, attached nowhere yet. The kernel refuses one where parts of the host's are covered, as
/// in a container; it also has to see the host's, so this comes before the root is changed.
fn own_proc() -> Result<Option<OwnedFd>, Fault> {
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
        Err(error) => Err(error).during(Step::MountProc),
    }
}

/// Attaches it. If there is none, the host's stays, read-only; or nothing, if only what was granted is to be seen.
fn attach_proc(proc: Option<&OwnedFd>) -> Result<(), Fault> {
    let target = make_room(c"/proc", true).during(Step::MountProc)?;
    proc.map_or(Ok(()), |proc| attach_at(proc, &target)).during(Step::MountProc)
}

/// Leaves only what was granted: a new root in memory, with copies of the granted places. The old one goes away.
fn change_root(only: &[Place], links: &[(std::ffi::CString, std::ffi::CString)]) -> Result<(), Fault> {
    let granted = copies(only)?;
    let root = private_folder(c"755", Some(1 << 20)).during(Step::ChangeRoot)?;
    // Any folder does to stand on; the new root covers it only until it becomes the root itself.
    attach(&root, c"/proc").during(Step::ChangeRoot)?;
    rustix::process::fchdir(&root).during(Step::ChangeRoot)?;
    rustix::process::pivot_root(c".", c".").during(Step::ChangeRoot)?;
    rustix::mount::unmount(c".", UnmountFlags::DETACH).during(Step::ChangeRoot)?;
    rustix::process::chdir(c"/").during(Step::ChangeRoot)?;
    for (path, target) in links {
        rustix::fs::symlink(target.as_c_str(), path.as_c_str()).during_on(Step::ChangeRoot, path)?;
    }
    for (place, copy) in only.iter().zip(granted) {
        mount_attributes::set(copy.as_fd(), READ_ONLY | NO_SETUID | NO_DEVICES)
            .during_on(Step::ChangeRoot, &place.path)?;
        attach_making_room(&copy, place)?;
    }
    Ok(())
}

/// Puts read-only copies over protected places. Their parents become mounts too, since those can't be renamed: otherwise
/// `.git` could be moved aside and a new one put in its place.
fn protect(plan: &Plan) -> Result<(), Fault> {
    for (places, attributes) in [(&plan.pinned, 0), (&plan.protected, READ_ONLY)] {
        for place in places {
            let copy = open_no_links(&place.path).and_then(|opened| copy_tree(&opened));
            let copy = copy.during_on(Step::Protect, &place.path)?;
            if attributes != 0 {
                mount_attributes::set(copy.as_fd(), attributes).during_on(Step::Protect, &place.path)?;
            }
            attach(&copy, &place.path).during_on(Step::Protect, &place.path)?;
        }
    }
    Ok(())
}

/// Covers sensitive places by something that can't be opened.
fn mask(masked: &[Place]) -> Result<(), Fault> {
    let mut covers = [None, None];
    for place in masked {
        // What another cover has hidden already needs no mask.
        let Ok(target) = open_no_links(&place.path) else { continue };
        let kind = usize::from(place.folder);
        let cover = match &covers[kind] {
            Some(cover) => cover,
            None => covers[kind].insert(make_mask(MASKS[kind], place.folder).during(Step::Mask)?),
        };
        let copy = copy_tree(cover).during_on(Step::Mask, &place.path)?;
        attach_at(&copy, &target).during_on(Step::Mask, &place.path)?;
    }
    Ok(())
}

/// Makes a mask: a mount of its own, so that every copy of it is read-only, and its mode can't be changed back. A folder
/// can be looked into, as programs that walk a tree give up at one that can't; there is nothing in it.
fn make_mask(path: &CStr, folder: bool) -> Result<OwnedFd, Errno> {
    let made = if folder { make_folder(path)? } else { make_file(path)? };
    rustix::fs::chmod(path, if folder { Mode::from_raw_mode(0o555) } else { Mode::empty() })?;
    let mount = copy_tree(&made)?;
    mount_attributes::set(mount.as_fd(), READ_ONLY)?;
    attach_at(&mount, &made)?;
    open_no_links(path)
}
