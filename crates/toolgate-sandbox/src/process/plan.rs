//! What a profile means on this machine right now: every path made absolute and free of links, everything that doesn't
//! exist left out, every place pinned to the file that it names. It is what goes to the zygote, and two equal plans mean
//! the same confinement, so a sandbox prepared for one serves the other.

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
    /// By which means.
    pub(super) tier: Tier,
    /// What alone can be read; `None` means everything.
    pub(super) only: Option<Vec<PinnedPath>>,
    /// Links at the top of the machine's tree (such as `/bin`) that go along with `only`: where, and to what.
    pub(super) links: Vec<(CString, CString)>,
    /// Directories that are covered by an empty one, outermost first.
    pub(super) covered: Vec<TmpfsMount>,
    /// What is put back on top of covered directories, to be read, outermost first.
    pub(super) shown: Vec<PinnedPath>,
    /// What can be changed, outermost first.
    pub(super) writable: Vec<PinnedPath>,
    /// Directories inside what can be changed that are covered by an empty one, though something in them was granted. They are
    /// covered once everything else is in place, and what was granted comes last.
    pub(super) hollow: Vec<TmpfsMount>,
    /// Parents of protected places, which can't be moved away, outermost first.
    pub(super) pinned: Vec<PinnedPath>,
    /// What stays as it is inside what can be changed.
    pub(super) protected: Vec<PinnedPath>,
    /// What can't be seen.
    pub(super) masked: Vec<PinnedPath>,
    /// Files in whose place a decoy is seen, where that can be had; otherwise they can't be seen either.
    pub(super) secret: Vec<PinnedPath>,
    /// Where the command's changes go, in place of what is writable.
    pub(super) overlays: Vec<OverlayMount>,
    /// The network.
    pub(super) network: NetworkPlan,
    /// Unix sockets.
    pub(super) unix_sockets: UnixSockets,
    /// How much may be used.
    pub(super) limits: ResourceLimits,
}

impl SandboxPlan {
    /// Whether a place lies in a directory that is covered late.
    pub(super) fn is_in_a_hollow(&self, place: &PinnedPath) -> bool {
        self.hollow.iter().any(|cover| is_inside(&place.path, &cover.path))
    }
}

/// Whether a path is another one or lies inside it.
pub(super) fn is_inside(path: &CStr, outer: &CStr) -> bool {
    let rest = path.to_bytes().strip_prefix(outer.to_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || outer.to_bytes() == b"/")
}

/// The network as it is built inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NetworkPlan {
    /// A loopback of its own.
    Off,
    /// A network of its own where every address is the sandbox itself, with doors that are answered outside.
    Listed {
        /// The doors.
        listeners: ListenerAddresses,
        /// The list of nameservers, to be replaced.
        nameservers: Option<PinnedPath>,
    },
    /// The machine's.
    Shared,
}

/// A path, and which file it named when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct PinnedPath {
    /// Absolute, with no links in it.
    pub(super) path: CString,
    /// The file system that it is on.
    pub(super) device: u64,
    /// Its number there.
    pub(super) inode: u64,
    /// Whether it is a directory.
    pub(super) directory: bool,
}

/// A directory that is covered by an empty one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct TmpfsMount {
    /// Where.
    pub(super) path: CString,
    /// Whether the command may write there.
    pub(super) writable: bool,
    /// Whether everybody may, as in `/tmp`.
    pub(super) shared: bool,
}

/// A writable root whose changes are kept apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct OverlayMount {
    /// The root.
    pub(super) path: CString,
    /// Where the changes go.
    pub(super) upper: CString,
    /// A directory beside it that the kernel needs.
    pub(super) work: CString,
}

/// A command, ready to be run inside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ExecRequest {
    /// Paths to try, in this order.
    pub(super) programs: Vec<CString>,
    /// The program's own name first.
    pub(super) arguments: Vec<CString>,
    /// `NAME=value` each.
    pub(super) environment: Vec<CString>,
    /// Where it starts.
    pub(super) working_directory: CString,
    /// The size of its terminal, if it has one.
    pub(super) terminal: Option<TerminalSize>,
}
