//! The presets: named baselines that hold until a rule says otherwise (C-13, C-16). The table below is all there is to
//! them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use toolgate_contract::{Decision, Permission};

use Decision::{Allow, Ask, Deny};

/// A call that changes more distinct paths than this asks first.
pub const MANY_FILES: usize = 20;

/// A named baseline, least strict first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Everything that no rule and no sensitive place forbids.
    Full,
    /// Reads, writes and commands; asks before it deletes, connects, touches a repository's history or writes what programs
    /// obey.
    #[default]
    Workspace,
    /// As `workspace`, but nobody is there to be asked, so an ask becomes a deny.
    Autonomous,
    /// Looks and talks, changes nothing.
    ReadOnly,
}

/// What each preset says to each permission.
#[rustfmt::skip]
const BASELINES: [(Permission, [Decision; 4]); 8] = [
    //                       full   workspace  autonomous  read-only
    (Permission::FsRead,     [Allow, Allow,     Allow,      Allow]),
    (Permission::FsWrite,    [Allow, Allow,     Allow,      Deny]),
    (Permission::FsDelete,   [Allow, Ask,       Ask,        Deny]),
    (Permission::ProcExec,   [Allow, Allow,     Allow,      Deny]),
    (Permission::NetConnect, [Allow, Ask,       Ask,        Deny]),
    (Permission::GitWrite,   [Allow, Ask,       Ask,        Deny]),
    (Permission::Agent,      [Allow, Allow,     Allow,      Allow]),
    (Permission::Unsandboxed,[Allow, Ask,       Ask,        Deny]),
];

impl Preset {
    /// Every preset, least strict first.
    pub const ALL: [Self; 4] = [Self::Full, Self::Workspace, Self::Autonomous, Self::ReadOnly];

    /// Every permission, in the table's order.
    pub(crate) fn permissions() -> impl Iterator<Item = Permission> {
        BASELINES.iter().map(|(permission, _)| *permission)
    }

    /// The name used in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Workspace => "workspace",
            Self::Autonomous => "autonomous",
            Self::ReadOnly => "read-only",
        }
    }

    /// What this preset says to a permission before any rule is read.
    pub fn baseline(self, permission: Permission) -> Decision {
        BASELINES.iter().find(|(known, _)| *known == permission).map_or(Deny, |(_, row)| row[self as usize])
    }

    /// What this preset says to what crosses a border: other rights, changes outside of the workspace, files that programs
    /// obey.
    pub(crate) fn outside_boundary(self) -> Decision {
        match self {
            Self::Full => Allow,
            Self::Workspace | Self::Autonomous => Ask,
            Self::ReadOnly => Deny,
        }
    }

    /// What this preset says to a call that changes this many paths at once.
    pub(crate) fn for_changes(self, paths: usize) -> Decision {
        match self {
            Self::Workspace | Self::Autonomous if paths > MANY_FILES => Ask,
            _ => Allow,
        }
    }

    /// Why the baseline is what it is, in a sentence.
    pub(crate) fn reason(self, permission: Permission) -> String {
        let what = match permission {
            Permission::FsRead => "reading files",
            Permission::FsWrite => "changing files",
            Permission::FsDelete => "deleting files",
            Permission::ProcExec => "running commands",
            Permission::NetConnect => "connecting to hosts",
            Permission::GitWrite => "changing a repository's history or remotes",
            Permission::Agent => "talking to the person and keeping notes",
            Permission::Unsandboxed => "running commands with no sandbox around them",
        };
        match (self.baseline(permission), permission) {
            (Deny, Permission::ProcExec) => {
                format!("The preset `{self}` runs only commands known to be read-only, and this one isn't known.")
            }
            (Allow, Permission::ProcExec) if self != Self::Full => {
                format!("The preset `{self}` runs commands that stay in the workspace, confined.")
            }
            (Allow, _) => format!("The preset `{self}` allows {what}."),
            (Ask, _) => format!("The preset `{self}` asks before {what}."),
            (Deny, _) => format!("The preset `{self}` forbids {what}."),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == name).ok_or_else(|| {
            format!("There is no preset `{name}`. Use `read-only`, `workspace`, `autonomous` or `full`.")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_round_trip() {
        for preset in Preset::ALL {
            assert_eq!(preset.as_str().parse(), Ok(preset));
        }
        assert!("yolo".parse::<Preset>().unwrap_err().contains("no preset `yolo`"));
    }

    #[test]
    fn a_stricter_baseline_never_allows_more() {
        for (permission, row) in BASELINES {
            assert!(row.is_sorted(), "{permission}: {row:?}");
        }
    }

    #[test]
    fn workspace_and_autonomous_ask_about_many_files() {
        let over = MANY_FILES + 1;
        assert_eq!(Preset::Workspace.for_changes(MANY_FILES), Allow);
        assert_eq!(Preset::Workspace.for_changes(over), Ask);
        assert_eq!(Preset::Autonomous.for_changes(over), Ask);
        assert_eq!(Preset::Full.for_changes(over), Allow);
    }
}
