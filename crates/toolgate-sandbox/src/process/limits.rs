//! The resource limits of a command. `None` means that Toolgate sets no limit.

use serde::{Deserialize, Serialize};

/// The resource limits of a command and its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Processes and threads at a time, together.
    pub processes: Option<u64>,
    /// Private writable memory of each process (`RLIMIT_DATA`), in bytes.
    pub memory: Option<u64>,
    /// Address space of each process, in bytes. Some runtimes reserve far more than they use.
    pub address_space: Option<u64>,
    /// Size of a file that is written, in bytes.
    pub file_size: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Seconds of processor time of each process.
    pub processor_seconds: Option<u64>,
    /// Size of each private tmpfs (`/tmp`, `/run`, `/dev/shm`, the home), in bytes.
    pub temporary_bytes: Option<u64>,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            processes: Some(1024),
            memory: Some(default_memory_limit()),
            address_space: None,
            file_size: Some(16 << 30),
            open_files: Some(4096),
            processor_seconds: None,
            temporary_bytes: Some(1 << 30),
        }
    }
}

/// Three quarters of this machine's memory, so that a runaway command fails before the machine does.
pub(super) fn default_memory_limit() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit)) / 4 * 3
}
