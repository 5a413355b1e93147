//! The redacted output of a process as it is written, for a person who follows it from a terminal.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;
use toolgate_redact::StreamRedactor;

/// How long text that might be the beginning of a secret is held back. It is short, so that a person sees what they type.
const HOLD_TIMEOUT: Duration = Duration::from_millis(40);

/// The output of a process, from now on.
pub struct ProcessFollower {
    pieces: Receiver<Arc<[u8]>>,
    redacting: StreamRedactor,
    is_held: bool,
}

impl ProcessFollower {
    pub(super) fn new(pieces: Receiver<Arc<[u8]>>, redacting: StreamRedactor) -> Self {
        Self { pieces, redacting, is_held: false }
    }

    /// The next output; none when the process has ended.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let piece = match self.is_held {
                true => timeout(HOLD_TIMEOUT, self.pieces.recv()).await,
                false => Ok(self.pieces.recv().await),
            };
            let clean = match piece {
                Ok(Ok(piece)) => {
                    self.is_held = true;
                    self.redacting.push(&piece)
                }
                Ok(Err(RecvError::Lagged(_))) => continue,
                Ok(Err(RecvError::Closed)) if !self.is_held => return None,
                // It has ended, or wrote nothing for a moment, as when it waits for input.
                Ok(Err(RecvError::Closed)) | Err(_) => {
                    self.is_held = false;
                    self.redacting.finish()
                }
            };
            if !clean.is_empty() {
                return Some(clean);
            }
        }
    }
}
