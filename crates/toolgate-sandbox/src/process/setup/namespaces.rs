//! The same user and group inside as outside, and nobody else: files keep their owner, and no other user can be become.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::super::setup_step::{SetupFault, SetupStep, StepContext};

/// A user and a group, found out before the namespace is entered: inside, nobody has a name until the maps are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    user: u32,
    group: u32,
}

impl Identity {
    /// Whom this process runs as.
    pub(super) fn current() -> Self {
        Self { user: rustix::process::geteuid().as_raw(), group: rustix::process::getegid().as_raw() }
    }
}

/// Maps the user and group onto themselves.
pub(super) fn map(Identity { user, group }: Identity) -> Result<(), SetupFault> {
    // Without this the kernel takes no group map from an ordinary user: dropping a group could open what it was barred from.
    write_once(c"/proc/self/setgroups", "deny").during_on(SetupStep::MapIdentity, c"setgroups")?;
    write_once(c"/proc/self/uid_map", &format!("{user} {user} 1")).during_on(SetupStep::MapIdentity, c"uid_map")?;
    write_once(c"/proc/self/gid_map", &format!("{group} {group} 1")).during_on(SetupStep::MapIdentity, c"gid_map")
}

/// These files take their whole content in one write.
pub(super) fn write_once(path: &std::ffi::CStr, content: &str) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, content.as_bytes()).map(drop)
}
