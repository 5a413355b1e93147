//! A question on the screen, which disappears when its answer is no longer needed.

use rustix::event::{PollFd, PollFlags, poll};

use toolgate_contract::CancellationToken;

use super::{DIM, paint};
use crate::output::errln;

/// A question on the screen. If dropped before it is answered, it says so at once that no answer is needed, since
/// whatever the call does next may be the last output of the program.
pub(super) struct TerminalPrompt {
    pub(super) withdrawn: CancellationToken,
    is_open: bool,
}

impl TerminalPrompt {
    pub(super) fn open() -> Self {
        Self { withdrawn: CancellationToken::new(), is_open: true }
    }

    /// Closes the answered question.
    pub(super) fn close(mut self) {
        self.is_open = false;
    }
}

impl Drop for TerminalPrompt {
    fn drop(&mut self) {
        self.withdrawn.cancel();
        if self.is_open {
            errln!("{}", paint(DIM, "(no longer needed: it was answered elsewhere or cancelled)"));
        }
    }
}

/// A line from the terminal; `None` when the terminal is closed, or when the answer is no longer needed. A withdrawn
/// question must not consume the line that answers the next one, so it polls before it reads.
pub(super) fn read_line(withdrawn: &CancellationToken) -> Option<String> {
    let stdin = std::io::stdin();
    let every = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    loop {
        if withdrawn.is_cancelled() {
            return None;
        }
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&every)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                let mut line = String::new();
                return stdin.read_line(&mut line).ok().filter(|&count| count > 0).map(|_| line);
            }
            Err(_) => return None,
        }
    }
}
