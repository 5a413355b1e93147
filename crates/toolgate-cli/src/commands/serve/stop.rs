//! How a server is told to stop.

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};
use toolgate_contract::CancellationToken;

use crate::terminal::{DIM, paint};

/// The first signal stops in order, the second leaves at once.
pub(super) fn stop_on_signal() -> Result<CancellationToken> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        for is_second in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if is_second {
                std::process::exit(130);
            }
            anstream::eprintln!("{}", paint(DIM, "Stopping: calls are cancelled and the record is finished."));
            stopping.cancel();
        }
    });
    Ok(stop)
}
