//! The means by which a sandbox confines commands.

use serde::{Deserialize, Serialize};

/// A sandbox's means of confinement, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Namespaces of our own making, with Landlock and seccomp: adds decoys, lists of hosts and rehearsals.
    Namespaces,
    /// Namespaces made by the system's `bwrap`, with Landlock and seccomp inside: every boundary holds.
    Bubblewrap,
    /// Landlock and seccomp alone. Nothing inside the workspace can be hidden from a command, so none runs where policy
    /// hides a file of the workspace; changes to protected paths are undone when the command has ended.
    Landlock,
    /// None: the command can do whatever its user can. Never chosen and never configured, only granted.
    Open,
}

impl Tier {
    /// The tiers that confine, weakest first: those that configuration can demand.
    pub const CONFINING: [Self; 3] = [Self::Landlock, Self::Bubblewrap, Self::Namespaces];

    /// What it is called, in configuration and in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Open => "nothing",
        }
    }
}
