//! Ends what hangs: a step that takes much too long loses its servers, so that it fails with a name and a sequence.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::attention;
use crate::leftovers::descendants;

/// Longer than any step takes, by the clock that stands still while the machine has no time for us.
const LONGEST_STEP: Duration = Duration::from_secs(240);

/// Milliseconds since the start at which the step has taken too long; 0 between steps.
static DEADLINE: AtomicU64 = AtomicU64::new(0);

/// Whether a step was ended since somebody last asked.
static HAS_ENDED_ONE: AtomicBool = AtomicBool::new(false);

/// Whether a step was ended since this was last asked.
pub(crate) fn has_ended_a_step() -> bool {
    HAS_ENDED_ONE.swap(false, Ordering::Relaxed)
}

fn now() -> u64 {
    u64::try_from(attention::now().as_millis()).unwrap_or(u64::MAX)
}

/// Does something under the eyes of the watchdog.
pub(crate) fn step<T>(act: impl FnOnce() -> T) -> T {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| drop(std::thread::spawn(watch)));
    DEADLINE.store(now() + u64::try_from(LONGEST_STEP.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    let result = act();
    DEADLINE.store(0, Ordering::Relaxed);
    result
}

fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let deadline = DEADLINE.load(Ordering::Relaxed);
        if deadline > 0 && now() > deadline {
            HAS_ENDED_ONE.store(true, Ordering::Relaxed);
            eprintln!("a step takes more than {LONGEST_STEP:?}; its processes are ended");
            for (pid, _) in descendants(rustix::process::getpid()) {
                let _ = Pid::from_raw(pid).map(|pid| rustix::process::kill_process(pid, Signal::KILL));
            }
        }
    }
}
