//! Patient waits for what happens in another thread or process. A test waits for the event itself, never for a time after
//! which the event should have happened; the bound is for a busy machine, and is no part of what a test shows.
//!
//! This file uses nothing but the standard library and Tokio, so that crates which the testkit depends on can include it
//! by path.

use std::time::{Duration, Instant};

/// How long a wait may take before the test fails.
pub const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until `look` finds something.
///
/// # Panics
///
/// If nothing is found within [`LONGEST_WAIT`].
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LONGEST_WAIT, "waited {LONGEST_WAIT:?} in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Waits until `is_so`.
///
/// # Panics
///
/// If it is not so within [`LONGEST_WAIT`].
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until `look` finds something, and lets other tasks run meanwhile.
///
/// # Panics
///
/// If nothing is found within [`LONGEST_WAIT`].
pub async fn wait_for_async<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LONGEST_WAIT, "waited {LONGEST_WAIT:?} in vain: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until `is_so`, and lets other tasks run meanwhile.
///
/// # Panics
///
/// If it is not so within [`LONGEST_WAIT`].
pub async fn wait_until_async(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for_async(what, || is_so().then_some(())).await;
}
