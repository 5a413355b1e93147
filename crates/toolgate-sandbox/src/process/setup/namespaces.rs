//! The user namespace: the same user and group inside as outside, and no other. Files keep their owner, and no process can
//! switch to another user.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::super::setup_step::{SetupFault, SetupStep, StepContext};

/// A user ID and a group ID. They are read before the namespace is entered: inside, they aren't known until the maps are
/// written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    user: u32,
    group: u32,
}

impl Identity {
    /// The IDs that this process runs with.
    pub(super) fn current() -> Self {
        Self { user: rustix::process::geteuid().as_raw(), group: rustix::process::getegid().as_raw() }
    }
}

/// Maps the user and group onto themselves.
pub(super) fn map(Identity { user, group }: Identity) -> Result<(), SetupFault> {
    // The kernel accepts a group map of an ordinary user only without `setgroups`: dropping a group could give access to
    // files that deny it to that group.
    write_once(c"/proc/self/setgroups", "deny").during_on(SetupStep::MapIdentity, c"setgroups")?;
    write_once(c"/proc/self/uid_map", &format!("{user} {user} 1")).during_on(SetupStep::MapIdentity, c"uid_map")?;
    write_once(c"/proc/self/gid_map", &format!("{group} {group} 1")).during_on(SetupStep::MapIdentity, c"gid_map")
}

/// Writes a file in `/proc` that takes its whole content in one write.
pub(super) fn write_once(path: &std::ffi::CStr, content: &str) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, content.as_bytes()).map(drop)
}
