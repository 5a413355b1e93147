//! The time of a snapshot, by the clock of the workspace's file system. A file's ctime can stand for its content only
//! where no program can set it, where the clock never goes back, and where the file wasn't changed so shortly before
//! that another change could have the same timestamp.

use std::fs::File;
use std::os::fd::AsFd;

use jiff::{SignedDuration, Timestamp};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use serde::{Deserialize, Serialize};
use toolgate_contract::FileMetadata;

use crate::JournalError;

/// Longer than the coarsest file system clock, which counts in steps of two seconds.
const MARGIN: SignedDuration = SignedDuration::from_secs(3);

/// File systems that maintain ctime themselves and know who has a file open for writing: ext2 to ext4, XFS, btrfs,
/// tmpfs, F2FS. Others take it from a server or from an mtime that any program can set.
const KEEP_TIMES: [u64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010];

/// A moment, by the clock of one file system.
#[derive(Debug, Clone, Copy)]
pub struct FilesystemTime {
    now: Timestamp,
    device: u64,
    keeps_times: bool,
}

/// A period in which the clock only went forward.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockEpoch {
    boot: String,
    /// The boot time by the wall clock, which changes when the clock is set.
    since: String,
}

impl FilesystemTime {
    /// The current time on the file system of this file.
    pub fn now(file: &File) -> Result<Self, JournalError> {
        let fault =
            |errno: rustix::io::Errno| JournalError::io("The time of the file system can't be read")(errno.into());
        let (now, unchanged) = (nanoseconds(UTIME_NOW), nanoseconds(UTIME_OMIT));
        rustix::fs::futimens(file, &Timestamps { last_access: unchanged, last_modification: now }).map_err(fault)?;
        let (facts, system) = (rustix::fs::fstat(file).map_err(fault)?, rustix::fs::fstatfs(file).map_err(fault)?);
        let now = Timestamp::new(facts.st_ctime, facts.st_ctime_nsec as i32).unwrap_or(Timestamp::MIN);
        let keeps_times = KEEP_TIMES.contains(&(system.f_type as u64));
        Ok(Self { now, device: facts.st_dev, keeps_times })
    }

    /// Whether a snapshot on this file system can reuse an earlier one.
    pub fn keeps_times(&self) -> bool {
        self.keeps_times
    }

    /// Whether the file was changed so shortly before that another change could have the same timestamp.
    pub fn is_young(&self, node: &FileMetadata) -> bool {
        node.changed.saturating_add(MARGIN).map_or(true, |settled| settled >= self.now)
    }

    /// Whether the file's ctime can be relied on in later snapshots.
    pub fn vouches_for(&self, node: &FileMetadata) -> bool {
        self.keeps_times && node.device == self.device && !self.is_young(node)
    }

    /// How long ago a file on the same file system was last changed.
    pub fn since(&self, file: impl AsFd) -> Option<SignedDuration> {
        let facts = rustix::fs::fstat(file).ok()?;
        Some(self.now.duration_since(Timestamp::new(facts.st_ctime, facts.st_ctime_nsec as i32).ok()?))
    }
}

fn nanoseconds(tv_nsec: i64) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec }
}

impl ClockEpoch {
    /// The current epoch; none where the kernel doesn't say.
    pub fn now() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let since = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().to_owned();
        Some(Self { boot, since })
    }
}
