//! The person's own terminal: its size, and every key, for a process that has a terminal too.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolgate_contract::TerminalSize;

/// The size of the terminal that this program writes to, where there is one.
pub(crate) fn stdout_size() -> Option<TerminalSize> {
    let size = tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some(TerminalSize { rows: size.ws_row, columns: size.ws_col })
}

/// Input from a person's terminal.
pub(crate) enum TerminalInput {
    /// Keys were pressed.
    Keys(Vec<u8>),
    /// The terminal was resized.
    Size(TerminalSize),
}

/// Reads input from the person's terminal.
pub(crate) struct Keyboard {
    stdin: tokio::io::Stdin,
    resized: Signal,
    keys: Vec<u8>,
}

impl Keyboard {
    pub(crate) fn new() -> Result<Self> {
        let resized = signal(SignalKind::window_change()).context("the terminal's size can't be followed")?;
        Ok(Self { stdin: tokio::io::stdin(), resized, keys: vec![0; 4096] })
    }

    /// The next input; `None` at the end of input.
    pub(crate) async fn next(&mut self) -> Option<TerminalInput> {
        loop {
            tokio::select! {
                _ = self.resized.recv() => {
                    if let Some(size) = stdout_size() {
                        return Some(TerminalInput::Size(size));
                    }
                }
                read = self.stdin.read(&mut self.keys) => {
                    let count = read.ok().filter(|count| *count > 0)?;
                    return Some(TerminalInput::Keys(self.keys[..count].to_vec()));
                }
            }
        }
    }
}

/// Raw mode: the terminal passes on every key. Dropping this restores the settings.
pub(crate) struct RawMode(Termios);

impl RawMode {
    /// `None` where there is no terminal.
    pub(crate) fn begin() -> Result<Option<Self>> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(&stdin).context("the terminal's settings can't be read")?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw).context("the terminal can't be made raw")?;
        Ok(Some(Self(before)))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
