//! How much a command may use. `None` means no limit of ours.

use serde::{Deserialize, Serialize};

/// How much a command and its children may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Processes and threads at a time, together.
    pub processes: Option<u64>,
    /// Memory of each process that it can write to and shares with nobody, in bytes.
    pub memory: Option<u64>,
    /// Address space of each process, in bytes. Some runtimes reserve far more than they use.
    pub address_space: Option<u64>,
    /// Size of a file that is written, in bytes.
    pub file_size: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Seconds of processor time of each process.
    pub processor_seconds: Option<u64>,
    /// Size of each private directory (`/tmp`, `/run`, `/dev/shm`, the home), in bytes. They live in memory.
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

/// Three quarters of what this machine has: whatever runs away ends before the machine does.
pub(super) fn default_memory_limit() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit)) / 4 * 3
}
