//! Stops the program on SIGINT (Ctrl-C), SIGTERM or SIGHUP.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout_at};
use toolgate_contract::CancellationToken;

/// How long after the first signal others are taken for the same one. A terminal sends Ctrl-C to every process in the foreground, and
/// programs such as `npm` and `timeout` then send it once more to the process that they started.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// The first signal cancels, so that nothing is left half done, and calls `on_cancel`; a later one exits at once. Where
/// signals can't be caught, they keep their default action.
pub(crate) fn cancel_on_signal(cancel: CancellationToken, on_cancel: impl FnOnce() + Send + 'static) {
    let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else { return };
    let mut hangup = (!is_hangup_ignored()).then(|| signal(SignalKind::hangup()).ok()).flatten();
    tokio::spawn(async move {
        next(&mut interrupt, &mut terminate, &mut hangup).await;
        on_cancel();
        cancel.cancel();
        let deadline = Instant::now() + SAME_SIGNAL;
        while timeout_at(deadline, next(&mut interrupt, &mut terminate, &mut hangup)).await.is_ok() {}
        let number = next(&mut interrupt, &mut terminate, &mut hangup).await;
        std::process::exit(128 + number);
    });
}

/// The number of the next signal.
async fn next(interrupt: &mut Signal, terminate: &mut Signal, hangup: &mut Option<Signal>) -> i32 {
    let hung_up = async {
        match hangup {
            Some(hangup) => hangup.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
        _ = hung_up => SignalKind::hangup().as_raw_value(),
    }
}

/// Whether SIGHUP is ignored, as under `nohup`.
#[allow(clippy::disallowed_methods, reason = "asks the kernel about this very process")]
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored & (1 << (SignalKind::hangup().as_raw_value() - 1)) != 0
}
