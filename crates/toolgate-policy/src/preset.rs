//! What each preset says to each permission until a rule says otherwise. The table below is all there is to presets.

use toolgate_config::Preset;
use toolgate_contract::{Decision, Permission};

use Decision::{Allow, Ask, Deny};

/// A call that changes more distinct paths than this asks first.
pub const MANY_FILES: usize = 20;

/// What each preset says to each permission.
#[rustfmt::skip]
const BASELINES: [(Permission, [Decision; 4]); 9] = [
    //                       full   workspace  autonomous  read-only
    (Permission::FsRead,     [Allow, Allow,     Allow,      Allow]),
    (Permission::FsWrite,    [Allow, Allow,     Allow,      Deny]),
    (Permission::FsDelete,   [Allow, Ask,       Ask,        Deny]),
    (Permission::ProcExec,   [Allow, Allow,     Allow,      Deny]),
    (Permission::NetConnect, [Allow, Ask,       Ask,        Deny]),
    (Permission::GitWrite,   [Allow, Ask,       Ask,        Deny]),
    (Permission::Agent,      [Allow, Allow,     Allow,      Allow]),
    (Permission::Unsandboxed,[Allow, Ask,       Ask,        Deny]),
    (Permission::McpCall,    [Allow, Ask,       Ask,        Deny]),
];

/// Every permission, in the table's order.
pub(crate) fn permissions() -> impl Iterator<Item = Permission> {
    BASELINES.iter().map(|(permission, _)| *permission)
}

/// What a preset says to a permission before any rule is read.
pub(crate) fn baseline(preset: Preset, permission: Permission) -> Decision {
    BASELINES.iter().find(|(known, _)| *known == permission).map_or(Deny, |(_, row)| row[preset as usize])
}

/// What a preset says to what goes beyond the workspace: other rights, changes outside of it, files that programs run or
/// load automatically.
pub(crate) fn outside_boundary(preset: Preset) -> Decision {
    match preset {
        Preset::Full => Allow,
        Preset::Workspace | Preset::Autonomous => Ask,
        Preset::ReadOnly => Deny,
    }
}

/// What a preset says to a call that changes this many paths at once.
pub(crate) fn for_changes(preset: Preset, paths: usize) -> Decision {
    match preset {
        Preset::Workspace | Preset::Autonomous if paths > MANY_FILES => Ask,
        _ => Allow,
    }
}

/// Why the baseline is what it is, in a sentence.
pub(crate) fn reason(preset: Preset, permission: Permission) -> String {
    let what = match permission {
        Permission::FsRead => "reading files",
        Permission::FsWrite => "changing files",
        Permission::FsDelete => "deleting files",
        Permission::ProcExec => "running commands",
        Permission::NetConnect => "connecting to hosts",
        Permission::GitWrite => "changing a repository's history or remotes",
        Permission::Agent => "talking to the person and keeping notes",
        Permission::Unsandboxed => "running commands with no sandbox around them",
        Permission::McpCall => "using tools of other MCP servers",
    };
    match (baseline(preset, permission), permission) {
        (Deny, Permission::ProcExec) => {
            format!("The preset `{preset}` runs only commands known to be read-only, and this one isn't known.")
        }
        (Allow, Permission::ProcExec) if preset != Preset::Full => {
            format!("The preset `{preset}` runs commands that stay in the workspace, confined.")
        }
        (Allow, _) => format!("The preset `{preset}` allows {what}."),
        (Ask, _) => format!("The preset `{preset}` asks before {what}."),
        (Deny, _) => format!("The preset `{preset}` forbids {what}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stricter_baseline_never_allows_more() {
        for (permission, row) in BASELINES {
            assert!(row.is_sorted(), "{permission}: {row:?}");
        }
    }

    #[test]
    fn workspace_and_autonomous_ask_about_many_files() {
        let over = MANY_FILES + 1;
        assert_eq!(for_changes(Preset::Workspace, MANY_FILES), Allow);
        assert_eq!(for_changes(Preset::Workspace, over), Ask);
        assert_eq!(for_changes(Preset::Autonomous, over), Ask);
        assert_eq!(for_changes(Preset::Full, over), Allow);
    }
}
