//! Finds the processes of a test among all that run on the machine, by words in their command lines.
//!
//! This file uses nothing but the standard library, so that crates which the testkit depends on can include it by path.

use std::sync::atomic::{AtomicU32, Ordering};

/// A duration for `sleep` that no other test uses, so that the process can be found by it.
pub fn unique_sleep() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The ids of all processes on the machine that have these words in their command line. `/proc` puts a NUL between two
/// arguments.
pub fn processes_with(words: &str) -> Vec<i32> {
    let has_words = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(words.len()).any(|part| part == words.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has_words).collect()
}
