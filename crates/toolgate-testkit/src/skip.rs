//! The one way for a test to say that it can't run here. A bare early return looks like success; a skip is counted and
//! listed by `cargo xtask test`, and fails in CI unless its key is in `.config/allowed-skips.toml`.
//!
//! This file uses nothing but the standard library, so that crates which the testkit depends on can include it by path.

use std::io::Write;

/// Names the file that collects skips, one a line: key, test and reason, with tabs between. `cargo xtask test` sets it.
pub const SKIPS_FILE: &str = "TOOLGATE_SKIPS";

/// Records that the running test, or part of it, is left out: `key` as in the list of allowed skips, `reason` for people.
///
/// # Panics
///
/// If the file that collects skips can't be written: a skip that nobody sees would pass for success.
pub fn skip(key: &str, reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    eprintln!("skipped: {key}: {test}: {reason}");
    let Some(path) = std::env::var_os(SKIPS_FILE) else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
    // One write, so that lines of tests that run side by side don't mix.
    let written = file.and_then(|mut file| file.write_all(format!("{key}\t{test}\t{reason}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("the skip of {test} can't be recorded in {}: {error}", path.display()));
}
