//! The mount namespace: the system read-only in a root of its own, a tmpfs over what is hidden, and bind mounts of what was
//! granted on top. Every path is opened once, without following symlinks, and compared with the file that the host saw there. From then
//! on its descriptor is used, so the path can't be swapped.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::super::plan::{NetworkPlan, PinnedPath, RootPlan, SandboxPlan, TmpfsMount, is_inside};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::mount::{self, NO_DEVICES, NO_SETUID, READ_ONLY};
use super::{decoys, devices, overlay, substitutes};
use crate::network::NAMESERVER;

/// The `.gitignore` of masked directories in the workspace.
pub(super) const IGNORE_ALL: &[u8] = b"*\n";

/// What is mounted over `/etc/resolv.conf`.
const RESOLV_CONF: &CStr = c"/dev/.nameservers";

/// Bytes of the tmpfs that becomes the root, or `/dev`. Both hold mount points only.
pub(super) const MOUNT_POINTS_BYTES: u64 = 1 << 20;

/// What is different from machine to machine.
pub(super) struct MountOutcome {
    /// Whether `/proc` is the sandbox's own.
    pub(super) own_proc: bool,
    /// An inotify descriptor that tells which decoys are opened; none if there are none.
    pub(super) watch: Option<OwnedFd>,
}

/// Builds all mounts.
pub(super) fn build(plan: &SandboxPlan) -> Result<MountOutcome, SetupFault> {
    let root = detached_root()?;
    // Taken before the mounts of the host have no devices.
    let devices = devices::copies()?;
    let granted = GrantedMounts::take(plan, &root)?;
    let (own_proc, proc) = match own_proc()? {
        Some(proc) => (true, Some(proc)),
        // The host's stays, or is attached to the new root.
        None => (false, plan.only.as_ref().map(|_| host_proc()).transpose()?),
    };
    if let Some(only) = &plan.only {
        change_root(&plan.links)?;
        attach_all(only, &granted.only)?;
    }
    attach_proc(proc.as_ref())?;
    devices::build(devices, plan.limits.temporary_bytes)?;
    for tmpfs in &plan.tmpfs_mounts {
        mount_tmpfs(tmpfs, plan.limits.temporary_bytes)?;
    }
    fill(plan, &granted, own_proc)
}

/// The root of this process's mounts, which become private.
fn detached_root() -> Result<OwnedFd, SetupFault> {
    let root = open_no_links(c"/").during(SetupStep::DetachMounts)?;
    mount::make_private(root.as_fd()).during(SetupStep::DetachMounts)?;
    Ok(root)
}

/// A root that this process is in, with nothing of the machine in it.
pub(super) struct OwnRoot(());

impl OwnRoot {
    /// Leaves the machine's mounts for a new root. Fails where a sandbox can have no `/proc` of its own.
    pub(super) fn enter(plan: &RootPlan) -> Result<Self, SetupFault> {
        detached_root()?;
        let devices = devices::copies()?;
        let proc = own_proc()?.ok_or(Errno::PERM).during(SetupStep::MountProc)?;
        change_root(&plan.links)?;
        attach_proc(Some(&proc))?;
        devices::build(devices, plan.temporary_bytes)?;
        for tmpfs in &plan.tmpfs_mounts {
            mount_tmpfs(tmpfs, plan.temporary_bytes)?;
        }
        for mask in [Mask::File, Mask::Directory, Mask::IgnoredByGit] {
            mask.make().during(SetupStep::Mask)?;
        }
        for place in &plan.only {
            make_mount_point(&place.path, place.directory).during_on(SetupStep::AttachRoot, &place.path)?;
        }
        Ok(Self(()))
    }

    /// Mounts what was granted. The plan has the same root as the one that this was made for.
    pub(super) fn fill(self, plan: &SandboxPlan, granted: &GrantedMounts) -> Result<MountOutcome, SetupFault> {
        attach_all(plan.only.as_deref().unwrap_or_default(), &granted.only)?;
        fill(plan, granted, true)
    }
}

/// Detached bind mounts of what a plan grants.
pub(super) struct GrantedMounts {
    only: Vec<OwnedFd>,
    shown: Vec<OwnedFd>,
    writable: Vec<OwnedFd>,
}

impl GrantedMounts {
    /// Takes them from the mounts of this process, which are of no other use afterwards.
    pub(super) fn take_from_machine(plan: &SandboxPlan) -> Result<Self, SetupFault> {
        Self::take(plan, &detached_root()?)
    }

    /// Takes them from the mounts below a root, which are read-only afterwards.
    fn take(plan: &SandboxPlan, root: &OwnedFd) -> Result<Self, SetupFault> {
        // Taken before anything is read-only.
        let writable = writable_copies(plan)?;
        mount::set(root.as_fd(), READ_ONLY | NO_SETUID | NO_DEVICES).during(SetupStep::MakeReadOnly)?;
        // Taken before anything is hidden. A copy has the attributes of its origin, so these are read-only.
        let (only, shown) = (copies(plan.only.as_deref().unwrap_or_default())?, copies(&plan.shown)?);
        Ok(Self { only, shown, writable })
    }
}

/// Mounts what was granted on top of what is hidden, and hides what is hidden in that.
fn fill(plan: &SandboxPlan, mounts: &GrantedMounts, own_proc: bool) -> Result<MountOutcome, SetupFault> {
    let granted = || plan.shown.iter().zip(&mounts.shown).chain(plan.writable.iter().zip(&mounts.writable));
    for (place, copy) in granted().filter(|(place, _)| !plan.is_in_late_tmpfs(place)) {
        attach_creating_target(copy, place)?;
    }
    for tmpfs in &plan.late_tmpfs_mounts {
        mount_tmpfs(tmpfs, plan.limits.temporary_bytes)?;
    }
    for (place, copy) in granted().filter(|(place, _)| plan.is_in_late_tmpfs(place)) {
        attach_creating_target(copy, place)?;
    }
    mount_resolv_conf(plan)?;
    protect(plan)?;
    substitutes::mount(&plan.substitutes)?;
    mask(&plan.masked, &plan.writable)?;
    let watch = decoys::place(&plan.secret)?;
    if watch.is_none() {
        mask(&plan.secret, &plan.writable)?;
    }
    Ok(MountOutcome { own_proc, watch })
}

/// Mounts a `resolv.conf` with our nameserver over the machine's. Every nameserver's address leads to the same listener;
/// this one also has no search domains, so programs don't look up names that exist in the local network alone.
fn mount_resolv_conf(plan: &SandboxPlan) -> Result<(), SetupFault> {
    let NetworkPlan::Listed { nameservers: Some(place), .. } = &plan.network else { return Ok(()) };
    let mounted = || -> Result<OwnedFd, Errno> {
        let file = make_file(RESOLV_CONF)?;
        rustix::io::write(&file, format!("nameserver {NAMESERVER}\n").as_bytes())?;
        let mount = copy_tree(&open_no_links(RESOLV_CONF)?)?;
        mount::set(mount.as_fd(), READ_ONLY)?;
        Ok(mount)
    };
    attach_creating_target(&mounted().during(SetupStep::OpenListeners)?, place)
}

/// Makes read-only what had to be writable while the sandbox was built. Files in `/proc/sys` belong to root, who could
/// otherwise change the settings of the machine.
pub(super) fn make_read_only(plan: &SandboxPlan, own_proc: bool) -> Result<(), SetupFault> {
    let mut paths: Vec<&CStr> = vec![c"/dev"];
    paths.extend(own_proc.then_some(c"/proc"));
    paths.extend(plan.only.is_some().then_some(c"/"));
    paths.extend(plan.late_tmpfs_mounts.iter().map(|tmpfs| tmpfs.path.as_c_str()));
    for path in paths {
        let mount = open_no_links(path).during_on(SetupStep::MakeReadOnly, path)?;
        mount::set_one(mount.as_fd(), READ_ONLY).during_on(SetupStep::MakeReadOnly, path)?;
    }
    Ok(())
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

/// A detached bind mount of a path and of all mounts below it. Fails if the path isn't the file that the host saw there.
fn copy_of(place: &PinnedPath) -> Result<OwnedFd, SetupFault> {
    let opened = open_no_links(&place.path).during_on(SetupStep::OpenRoot, &place.path)?;
    let found = rustix::fs::fstat(&opened).during_on(SetupStep::OpenRoot, &place.path)?;
    if (found.st_dev, found.st_ino) != (place.device, place.inode) {
        return Err(Errno::STALE).during_on(SetupStep::OpenRoot, &place.path);
    }
    copy_tree(&opened).during_on(SetupStep::OpenRoot, &place.path)
}

/// Opens a path without following any symlink.
pub(super) fn open_no_links(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// A detached bind mount of what is open and of all mounts below it.
pub(super) fn copy_tree(opened: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(opened, c"", flags)
}

/// Attaches a mount at a path that exists.
pub(super) fn attach(mount: &OwnedFd, path: &CStr) -> Result<(), Errno> {
    attach_at(mount, &open_no_links(path)?)
}

/// Attaches a mount at what is open.
pub(super) fn attach_at(mount: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, c"", target, c"", flags)
}

/// Attaches a mount at a path that may be inside a tmpfs, where it has to be created first.
fn attach_creating_target(mount: &OwnedFd, place: &PinnedPath) -> Result<(), SetupFault> {
    let target = make_mount_point(&place.path, place.directory);
    target.and_then(|target| attach_at(mount, &target)).during_on(SetupStep::AttachRoot, &place.path)
}

/// Opens a path, and creates what is missing of it. Only our own tmpfs mounts are writable at this time.
pub(super) fn make_mount_point(path: &CStr, directory: bool) -> Result<OwnedFd, Errno> {
    match open_no_links(path) {
        Err(Errno::NOENT) => {}
        other => return other,
    }
    let make = if directory { make_directory } else { make_file };
    match make(path) {
        Err(Errno::NOENT) => make_parents(path).and_then(|()| make(path)),
        other => other,
    }
}

/// Creates what is missing of the directories above a path.
fn make_parents(path: &CStr) -> Result<(), Errno> {
    let bytes = path.to_bytes();
    for (at, _) in bytes.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/') {
        match rustix::fs::mkdir(&bytes[..at], Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates an empty directory.
pub(super) fn make_directory(path: &CStr) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))?;
    open_no_links(path)
}

/// Creates an empty file.
pub(super) fn make_file(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::from_raw_mode(0o644))
}

/// A detached tmpfs.
pub(super) fn new_tmpfs(mode: &CStr, bytes: Option<u64>) -> Result<OwnedFd, Errno> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, c"mode", mode)?;
    if let Some(bytes) = bytes {
        fsconfig_set_string(&context, c"size", bytes.to_string())?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn mount_tmpfs(tmpfs: &TmpfsMount, bytes: Option<u64>) -> Result<(), SetupFault> {
    let mode = if tmpfs.shared { c"1777" } else { c"755" };
    let mount = new_tmpfs(mode, bytes).during_on(SetupStep::MountPrivateDirectory, &tmpfs.path)?;
    let target = make_mount_point(&tmpfs.path, true);
    target.and_then(|target| attach_at(&mount, &target)).during_on(SetupStep::MountPrivateDirectory, &tmpfs.path)
}

/// A detached `/proc` of the sandbox's process namespace. The kernel refuses it where parts of the host's `/proc` are hidden,
/// as in a container. It also refuses it where the host's can't be seen, so this comes before `pivot_root`.
fn own_proc() -> Result<Option<OwnedFd>, SetupFault> {
    let mounted = || -> Result<OwnedFd, Errno> {
        let context = fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let attributes =
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    match mounted() {
        Ok(proc) => Ok(Some(proc)),
        Err(Errno::PERM) => Ok(None),
        Err(error) => Err(error).during(SetupStep::MountProc),
    }
}

/// A detached bind mount of the host's `/proc`, read-only as everything of the host is by now.
fn host_proc() -> Result<OwnedFd, SetupFault> {
    open_no_links(c"/proc").and_then(|opened| copy_tree(&opened)).during(SetupStep::MountProc)
}

/// Attaches the sandbox's `/proc`, or the host's. In a root that wasn't changed, the host's is there already, read-only.
fn attach_proc(proc: Option<&OwnedFd>) -> Result<(), SetupFault> {
    let target = make_mount_point(c"/proc", true).during(SetupStep::MountProc)?;
    proc.map_or(Ok(()), |proc| attach_at(proc, &target)).during(SetupStep::MountProc)
}

/// Replaces the root by a tmpfs with these symlinks (`pivot_root`), and unmounts the old root.
fn change_root(links: &[(CString, CString)]) -> Result<(), SetupFault> {
    let root = new_tmpfs(c"755", Some(MOUNT_POINTS_BYTES)).during(SetupStep::ChangeRoot)?;
    // `pivot_root` needs a mount point. Any directory will do: the new root hides it only until it is the root.
    attach(&root, c"/proc").during(SetupStep::ChangeRoot)?;
    rustix::process::fchdir(&root).during(SetupStep::ChangeRoot)?;
    rustix::process::pivot_root(c".", c".").during(SetupStep::ChangeRoot)?;
    rustix::mount::unmount(c".", UnmountFlags::DETACH).during(SetupStep::ChangeRoot)?;
    rustix::process::chdir(c"/").during(SetupStep::ChangeRoot)?;
    for (path, target) in links {
        make_parents(path).during_on(SetupStep::ChangeRoot, path)?;
        rustix::fs::symlink(target.as_c_str(), path.as_c_str()).during_on(SetupStep::ChangeRoot, path)?;
    }
    Ok(())
}

fn attach_all(places: &[PinnedPath], mounts: &[OwnedFd]) -> Result<(), SetupFault> {
    places.iter().zip(mounts).try_for_each(|(place, mount)| attach_creating_target(mount, place))
}

/// Makes protected paths read-only by bind mounts. Their parents become mounts as well, because a mount point can't be
/// renamed: otherwise a command could move `.git` away and create a new one.
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

/// Mounts masks over sensitive paths.
fn mask(masked: &[PinnedPath], writable: &[PinnedPath]) -> Result<(), SetupFault> {
    let mut masks: Vec<(Mask, OwnedFd)> = Vec::new();
    for place in masked {
        // What a tmpfs hides already needs no mask.
        let Ok(target) = open_no_links(&place.path) else { continue };
        let kind = Mask::for_path(place, writable);
        let known = masks.iter().position(|(known, _)| *known == kind);
        let at = match known {
            Some(at) => at,
            None => {
                masks.push((kind, kind.make().during(SetupStep::Mask)?));
                masks.len() - 1
            }
        };
        let mask = &masks[at].1;
        let copy = copy_tree(mask).during_on(SetupStep::Mask, &place.path)?;
        attach_at(&copy, &target).during_on(SetupStep::Mask, &place.path)?;
    }
    Ok(())
}

/// What is mounted over a sensitive path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mask {
    /// An empty file that can't be opened.
    File,
    /// An empty directory. It can be listed: programs that walk a tree fail at one that can't be.
    Directory,
    /// A directory of the workspace, with a `.gitignore` that covers all of it: git would try to remove an empty directory that
    /// it doesn't track, and can't.
    IgnoredByGit,
}

impl Mask {
    fn for_path(place: &PinnedPath, writable: &[PinnedPath]) -> Self {
        match place.directory {
            false => Self::File,
            true if writable.iter().any(|root| is_inside(&place.path, &root.path)) => Self::IgnoredByGit,
            true => Self::Directory,
        }
    }

    fn path(self) -> &'static CStr {
        match self {
            Self::File => c"/dev/.masked-file",
            Self::Directory => c"/dev/.masked-directory",
            Self::IgnoredByGit => c"/dev/.masked-and-ignored",
        }
    }

    /// The mask; it is created if there is none yet. It is a mount, so that every bind mount of it is read-only and its mode can't
    /// be changed back.
    fn make(self) -> Result<OwnedFd, Errno> {
        let path = self.path();
        match open_no_links(path) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let created = if self == Self::File { make_file(path)? } else { make_directory(path)? };
        if self == Self::IgnoredByGit {
            let name = super::zygote_main::c_string([path.to_bytes(), b"/.gitignore"].concat());
            rustix::io::write(make_file(&name)?, IGNORE_ALL)?;
        }
        rustix::fs::chmod(path, if self == Self::File { Mode::empty() } else { Mode::from_raw_mode(0o555) })?;
        let mount = copy_tree(&created)?;
        mount::set(mount.as_fd(), READ_ONLY)?;
        attach_at(&mount, &created)?;
        open_no_links(path)
    }
}
