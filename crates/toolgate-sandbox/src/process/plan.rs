//! A profile applied to this machine as it is right now: every path is absolute and free of symlinks, what doesn't exist is
//! left out, and each path is pinned to the file that it names. The plan is sent to the zygote. Two equal plans are the same
//! confinement, so a sandbox that was built for one can be used for the other.

use std::ffi::{CStr, CString};

use serde::{Deserialize, Serialize};
use toolgate_contract::TerminalSize;

use super::enforcement::Tier;
use super::limits::ResourceLimits;
use super::profile::UnixSockets;
use crate::network::ListenerAddresses;

/// A confinement, ready to be built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SandboxPlan {
    /// The mechanism that confines it.
    pub(super) tier: Tier,
    /// The only paths that can be read; `None` means everything.
    pub(super) only: Option<Vec<PinnedPath>>,
    /// Symlinks in the root directory (such as `/bin`) that go along with `only`: path and target.
    pub(super) links: Vec<(CString, CString)>,
    /// Directories with an empty tmpfs mounted over them, outermost first.
    pub(super) tmpfs_mounts: Vec<TmpfsMount>,
    /// Paths bind-mounted read-only on top of those, outermost first.
    pub(super) shown: Vec<PinnedPath>,
    /// Paths that can be changed, outermost first.
    pub(super) writable: Vec<PinnedPath>,
    /// Hidden directories inside of writable ones, which hold something that was granted. Their tmpfs is mounted after all
    /// other mounts, and what was granted is mounted on top of it.
    pub(super) late_tmpfs_mounts: Vec<TmpfsMount>,
    /// Parents of protected paths, which can't be renamed, outermost first.
    pub(super) pinned: Vec<PinnedPath>,
    /// Read-only paths inside of writable ones.
    pub(super) protected: Vec<PinnedPath>,
    /// Hidden paths.
    pub(super) masked: Vec<PinnedPath>,
    /// Files that a decoy is mounted over, where that is possible; elsewhere they are hidden.
    pub(super) secret: Vec<PinnedPath>,
    /// Files that another content is mounted over.
    pub(super) substitutes: Vec<SubstituteMount>,
    /// The overlays that take the command's changes in place of the writable paths.
    pub(super) overlays: Vec<OverlayMount>,
    /// The network.
    pub(super) network: NetworkPlan,
    /// Unix sockets.
    pub(super) unix_sockets: UnixSockets,
    /// Whether the host makes all connections of the command, because it can see sockets of others.
    pub(super) watches_connects: bool,
    /// The resource limits.
    pub(super) limits: ResourceLimits,
}

/// The root directory of a sandbox that sees nothing of the machine but what is granted, before anything of that is mounted in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RootPlan {
    /// What of the machine will be mounted first; there are mount points for it.
    pub(super) only: Vec<PinnedPath>,
    /// Symlinks: path and target.
    pub(super) links: Vec<(CString, CString)>,
    /// Directories that are a tmpfs of their own.
    pub(super) tmpfs_mounts: Vec<TmpfsMount>,
    /// Bytes of each tmpfs.
    pub(super) temporary_bytes: Option<u64>,
}

impl SandboxPlan {
    /// The root of this sandbox, if it can be made before anything of the machine is mounted in it: if nothing that it has of its
    /// own is inside of what can be read, or the other way round.
    pub(super) fn separate_root(&self) -> Option<RootPlan> {
        let only = self.only.as_ref()?;
        let own = [c"/dev", c"/proc"].into_iter().chain(self.tmpfs_mounts.iter().map(|tmpfs| tmpfs.path.as_c_str()));
        let overlaps = |own: &CStr| only.iter().any(|place| is_inside(own, &place.path) || is_inside(&place.path, own));
        (!own.into_iter().any(overlaps)).then(|| RootPlan {
            only: only.clone(),
            links: self.links.clone(),
            tmpfs_mounts: self.tmpfs_mounts.clone(),
            temporary_bytes: self.limits.temporary_bytes,
        })
    }

    /// Whether a path is in one of the late tmpfs mounts.
    pub(super) fn is_in_late_tmpfs(&self, place: &PinnedPath) -> bool {
        self.late_tmpfs_mounts.iter().any(|tmpfs| is_inside(&place.path, &tmpfs.path))
    }
}

/// Whether `path` is `outer` or inside of it.
pub(super) fn is_inside(path: &CStr, outer: &CStr) -> bool {
    let rest = path.to_bytes().strip_prefix(outer.to_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || outer.to_bytes() == b"/")
}

/// How the network namespace is set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NetworkPlan {
    /// A network namespace with a loopback interface only.
    Off,
    /// A network namespace in which every address is local, with listeners that the proxy on the host serves.
    Listed {
        /// The listeners.
        listeners: ListenerAddresses,
        /// `/etc/resolv.conf`, to be replaced.
        nameservers: Option<PinnedPath>,
    },
    /// The machine's network.
    Shared,
}

/// A path, and which file it named when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct PinnedPath {
    /// Absolute, without symlinks.
    pub(super) path: CString,
    /// The device number of its file system.
    pub(super) device: u64,
    /// Its inode number.
    pub(super) inode: u64,
    /// Whether it is a directory.
    pub(super) directory: bool,
}

/// A directory with an empty tmpfs mounted over it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct TmpfsMount {
    /// The mount point.
    pub(super) path: CString,
    /// Whether the command can write to it.
    pub(super) writable: bool,
    /// Whether its mode lets every user write to it, as in `/tmp`.
    pub(super) shared: bool,
}

/// A file that another content is mounted over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct SubstituteMount {
    /// The file.
    pub(super) place: PinnedPath,
    /// What is seen instead of it.
    pub(super) content: Vec<u8>,
    /// The permission bits.
    pub(super) mode: u32,
    /// The modification time, in seconds since 1970.
    pub(super) modified: Option<u32>,
}

/// A writable root whose changes are staged in an overlay.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct OverlayMount {
    /// The root, which is the lower directory.
    pub(super) path: CString,
    /// The upper directory, which takes the changes.
    pub(super) upper: CString,
    /// The work directory that overlayfs needs.
    pub(super) work: CString,
}

/// A command, ready to be executed in a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ExecRequest {
    /// Paths of the program to try, in this order.
    pub(super) programs: Vec<CString>,
    /// `argv`: the program's name first.
    pub(super) arguments: Vec<CString>,
    /// The environment, each as `NAME=value`.
    pub(super) environment: Vec<CString>,
    /// The directory that it starts in.
    pub(super) working_directory: CString,
    /// The size of its terminal, if it has one.
    pub(super) terminal: Option<TerminalSize>,
    /// Whether it can be stopped there as a job of a shell can.
    pub(super) is_job: bool,
}

#[cfg(test)]
mod tests {
    use super::super::planning::plan_unconfined;
    use super::super::profile::Profile;
    use super::*;

    /// What can be read hides or is hidden by what a sandbox has of its own, in an order that only a root made at once keeps.
    #[test]
    fn a_root_is_made_ahead_only_where_nothing_overlaps() {
        let c_string = |path: &str| CString::new(path).unwrap();
        for (only, expected) in [
            (&["/usr", "/etc", "/srv/home-of-others"][..], true),
            (&["/usr", "/srv/home"], false),
            (&["/usr", "/srv"], false),
            (&["/usr", "/srv/home/me"], false),
            (&["/usr", "/dev/shm"], false),
            (&["/proc/sys"], false),
            (&["/"], false),
        ] {
            let mut plan = plan_unconfined(&Profile::for_workspace("/w".as_ref(), None));
            let place = |path: &&str| PinnedPath { path: c_string(path), device: 0, inode: 0, directory: true };
            plan.only = Some(only.iter().map(place).collect());
            plan.tmpfs_mounts = vec![TmpfsMount { path: c_string("/srv/home"), writable: true, shared: false }];
            assert_eq!(plan.separate_root().is_some(), expected, "{only:?}");
        }
        assert_eq!(plan_unconfined(&Profile::for_workspace("/w".as_ref(), None)).separate_root(), None);
    }
}
