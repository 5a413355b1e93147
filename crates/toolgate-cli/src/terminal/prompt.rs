//! A question on the screen, which goes away when nobody waits for its answer any more.

use rustix::event::{PollFd, PollFlags, poll};
use toolgate_contract::CancellationToken;

use super::{DIM, paint};

/// A question on the screen. Dropped while it is open, it says that nobody waits for its answer any more: at once, since
/// what the call does next may be the last thing that the program shows.
pub(super) struct TerminalPrompt {
    pub(super) withdrawn: CancellationToken,
    is_open: bool,
}

impl TerminalPrompt {
    pub(super) fn open() -> Self {
        Self { withdrawn: CancellationToken::new(), is_open: true }
    }

    /// It was answered.
    pub(super) fn close(mut self) {
        self.is_open = false;
    }
}

impl Drop for TerminalPrompt {
    fn drop(&mut self) {
        self.withdrawn.cancel();
        if self.is_open {
            anstream::eprintln!("{}", paint(DIM, "(no longer needed: it was answered elsewhere or cancelled)"));
        }
    }
}

/// A line from the terminal; none when it is closed, or when nobody waits for the answer any more. A question that was
/// withdrawn must not take the line that answers the next one, so it looks before it reads.
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
