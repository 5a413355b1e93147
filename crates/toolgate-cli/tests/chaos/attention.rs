//! A clock for what hangs. It goes on only as far as the machine has time for us: beside a build that takes every core, a
//! minute may pass in which nothing of ours runs, and whoever waits for it would be impatient by the clock on the wall.

use std::hint::black_box;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Between two pieces of work.
const PAUSE: Duration = Duration::from_millis(500);
/// Steps of one piece of work: a few milliseconds, so a small part of a second where the machine has time, and long where it
/// hasn't.
const STEPS: u64 = 200_000;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// How often there was time for a pause and a piece of work.
static PIECES: AtomicU64 = AtomicU64::new(0);

/// The time that the machine had for us since the first look at this clock.
pub(crate) fn now() -> Duration {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| drop(std::thread::spawn(work)));
    PAUSE * u32::try_from(PIECES.load(Ordering::Relaxed)).unwrap_or(u32::MAX)
}

fn work() {
    loop {
        std::thread::sleep(PAUSE);
        (0..STEPS).for_each(|step| {
            black_box(step);
        });
        PIECES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until it is so.
///
/// # Panics
///
/// If it is not so within the longest time that a test waits, by this clock.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = now();
    while !is_so() {
        assert!(now() - start < toolgate_testkit::LONGEST_WAIT, "waited in vain: {what}");
        std::thread::sleep(LOOK);
    }
}
