//! What a profile means on this machine right now: every path made absolute and free of links, everything that doesn't
//! exist left out, every place pinned to the file that it names. It is what goes to the zygote, and two equal plans mean
//! the same confinement, so a sandbox prepared for one serves the other.

use std::ffi::{CStr, CString};

use serde::{Deserialize, Serialize};

use super::enforcement::Tier;
use super::limits::Limits;
use super::profile::UnixSockets;
use crate::network::Doors;

/// A confinement, ready to be built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// By which means.
    pub(super) tier: Tier,
    /// What alone can be read; `None` means everything.
    pub(super) only: Option<Vec<Place>>,
    /// Links at the top of the machine's tree (such as `/bin`) that go along with `only`: where, and to what.
    pub(super) links: Vec<(CString, CString)>,
    /// Folders that are covered by an empty one, outermost first.
    pub(super) covered: Vec<Cover>,
    /// What is put back on top of covered folders, to be read, outermost first.
    pub(super) shown: Vec<Place>,
    /// What can be changed, outermost first.
    pub(super) writable: Vec<Place>,
    /// Folders inside what can be changed that are covered by an empty one, though something in them was granted. They are
    /// covered once everything else is in place, and what was granted comes last.
    pub(super) hollow: Vec<Cover>,
    /// Parents of protected places, which can't be moved away, outermost first.
    pub(super) pinned: Vec<Place>,
    /// What stays as it is inside what can be changed.
    pub(super) protected: Vec<Place>,
    /// What can't be seen.
    pub(super) masked: Vec<Place>,
    /// Files in whose place a decoy is seen, where that can be had; otherwise they can't be seen either.
    pub(super) secret: Vec<Place>,
    /// Where the command's changes go, in place of what is writable.
    pub(super) overlays: Vec<Overlay>,
    /// The network.
    pub(super) network: Wiring,
    /// Unix sockets.
    pub(super) unix_sockets: UnixSockets,
    /// How much may be used.
    pub(super) limits: Limits,
}

impl Plan {
    /// Whether a place lies in a folder that is covered late.
    pub(super) fn is_in_a_hollow(&self, place: &Place) -> bool {
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
pub(super) enum Wiring {
    /// A loopback of its own.
    Off,
    /// A network of its own where every address is the sandbox itself, with doors that are answered outside.
    Listed {
        /// The doors.
        doors: Doors,
        /// The list of nameservers, to be replaced.
        nameservers: Option<Place>,
    },
    /// The machine's.
    Shared,
}

/// A path, and which file it named when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Place {
    /// Absolute, with no links in it.
    pub(super) path: CString,
    /// The file system that it is on.
    pub(super) device: u64,
    /// Its number there.
    pub(super) inode: u64,
    /// Whether it is a folder.
    pub(super) folder: bool,
}

/// A folder that is covered by an empty one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Cover {
    /// Where.
    pub(super) path: CString,
    /// Whether the command may write there.
    pub(super) writable: bool,
    /// Whether everybody may, as in `/tmp`.
    pub(super) shared: bool,
}

/// A writable root whose changes are kept apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Overlay {
    /// The root.
    pub(super) path: CString,
    /// Where the changes go.
    pub(super) upper: CString,
    /// A folder beside it that the kernel needs.
    pub(super) work: CString,
}

/// A command, ready to be run inside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    /// Paths to try, in this order.
    pub(super) programs: Vec<CString>,
    /// The program's own name first.
    pub(super) arguments: Vec<CString>,
    /// `NAME=value` each.
    pub(super) environment: Vec<CString>,
    /// Where it starts.
    pub(super) working_directory: CString,
    /// The size of its terminal, if it has one.
    pub(super) terminal: Option<super::command::TerminalSize>,
}
