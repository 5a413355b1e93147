//! The person's side: their terminal becomes the process' terminal until they let go.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};
use toolgate_contract::TerminalSize;

use super::frames::{Frame, read, write};
use super::{Found, Request, connect};

/// Ctrl-]: lets go.
const LET_GO: u8 = 0x1d;

/// How it came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// The person let go; the process goes on.
    Detached,
    /// The process ended, with this code.
    Ended(i32),
}

/// Attaches this terminal to a process.
pub(crate) async fn attach(found: &Found, by: &str) -> Result<Left> {
    let stream = connect(&found.socket).await.context("the program that runs it is gone")?;
    let (mut from, mut to) = stream.into_split();
    let process = found.running.process.clone();
    let request = Request::Attach { process, size: own_size(), by: by.to_owned() };
    write(&mut to, &Frame::Request(serde_json::to_vec(&request)?)).await?;
    let raw = if found.running.tty { Raw::begin()? } else { None };
    let has_let_go = Arc::new(AtomicBool::new(false));
    let typing = tokio::spawn(typing(to, Arc::clone(&has_let_go)));
    let left = watching(&mut from, typing, &has_let_go).await;
    drop(raw);
    left
}

/// Shows what the process writes until it ends, or until the person has let go.
async fn watching(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    mut typing: tokio::task::JoinHandle<()>,
    let_go: &AtomicBool,
) -> Result<Left> {
    let mut is_typing = true;
    loop {
        let frame = tokio::select! {
            // Whoever has nothing more to type may still want to see.
            _ = &mut typing, if is_typing => {
                is_typing = false;
                if std::io::stdin().is_terminal() { return Ok(Left::Detached) } else { continue }
            }
            frame = read(from) => frame?,
        };
        match frame {
            Some(Frame::Output(bytes)) => {
                let mut out = std::io::stdout().lock();
                out.write_all(&bytes).and_then(|()| out.flush()).context("the terminal can't be written to")?;
            }
            Some(Frame::Ended(code)) => {
                return Ok(Left::Ended(String::from_utf8_lossy(&code).parse().unwrap_or(-1)));
            }
            Some(Frame::Refused(why)) => bail!("{}", String::from_utf8_lossy(&why)),
            Some(_) => {}
            // The other side hangs up at once when the person lets go, perhaps before we have heard of that ourselves.
            None if let_go.load(Ordering::Acquire) => return Ok(Left::Detached),
            None => bail!("the program that runs it has ended, and the process with it"),
        }
    }
}

/// Passes on what is typed, and the terminal's size when that changes. Ends when the person lets go.
async fn typing(mut to: impl tokio::io::AsyncWrite + Unpin, has_let_go: Arc<AtomicBool>) {
    let mut stdin = tokio::io::stdin();
    let mut bytes = vec![0; 4096];
    let Ok(mut resized) = signal(SignalKind::window_change()) else { return };
    loop {
        let frame = tokio::select! {
            _ = resized.recv() => match own_size().and_then(|size| serde_json::to_vec(&size).ok()) {
                Some(json) => Frame::Size(json),
                None => continue,
            },
            read = stdin.read(&mut bytes) => match read {
                Ok(0) | Err(_) => break,
                Ok(count) => Frame::Input(bytes[..count].to_vec()),
            },
        };
        let (frame, let_go) = until_let_go(frame);
        if write(&mut to, &frame).await.is_err() || let_go {
            has_let_go.store(let_go, Ordering::Release);
            let _ = to.shutdown().await;
            break;
        }
    }
    if !std::io::stdin().is_terminal() {
        // What was piped in has been passed on; the other side is told by nobody that it was the last.
        std::future::pending::<()>().await;
    }
}

/// What was typed before the person let go, and whether they did.
fn until_let_go(frame: Frame) -> (Frame, bool) {
    match frame {
        Frame::Input(mut typed) => {
            let end = typed.iter().position(|byte| *byte == LET_GO);
            typed.truncate(end.unwrap_or(typed.len()));
            (Frame::Input(typed), end.is_some())
        }
        other => (other, false),
    }
}

fn own_size() -> Option<TerminalSize> {
    let size = tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some(TerminalSize { rows: size.ws_row, columns: size.ws_col })
}

/// A terminal that passes on every key as it is. When this is dropped, it is as it was.
struct Raw(Termios);

impl Raw {
    /// None where there is no terminal.
    fn begin() -> Result<Option<Self>> {
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

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
