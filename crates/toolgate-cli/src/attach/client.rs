//! The person's side: their terminal becomes the process' terminal until they let go.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt;

use super::frames::{Frame, read, write};
use super::{AttachRequest, AttachTarget, connect};
use crate::terminal::{Keyboard, RawMode, TerminalInput, stdout_size};

/// Ctrl-]: lets go.
const LET_GO: u8 = 0x1d;

/// How it came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachEnd {
    /// The person let go; the process goes on.
    Detached,
    /// The process ended, with this code.
    Ended(i32),
}

/// Attaches this terminal to a process.
pub(crate) async fn attach(found: &AttachTarget, by: &str) -> Result<AttachEnd> {
    let stream = connect(&found.socket).await.context("the program that runs it is gone")?;
    let (mut from, mut to) = stream.into_split();
    let process = found.running.process.clone();
    let request = AttachRequest::Attach { process, size: stdout_size(), by: by.to_owned() };
    write(&mut to, &Frame::Request(serde_json::to_vec(&request)?)).await?;
    let raw = if found.running.tty { RawMode::begin()? } else { None };
    let has_let_go = Arc::new(AtomicBool::new(false));
    let typing = tokio::spawn(typing(to, Keyboard::new()?, Arc::clone(&has_let_go)));
    let left = watching(&mut from, typing, &has_let_go).await;
    drop(raw);
    left
}

/// Shows what the process writes until it ends, or until the person has let go.
async fn watching(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    mut typing: tokio::task::JoinHandle<()>,
    let_go: &AtomicBool,
) -> Result<AttachEnd> {
    let mut is_typing = true;
    loop {
        let frame = tokio::select! {
            // Whoever has nothing more to type may still want to see.
            _ = &mut typing, if is_typing => {
                is_typing = false;
                if std::io::stdin().is_terminal() { return Ok(AttachEnd::Detached) } else { continue }
            }
            frame = read(from) => frame?,
        };
        match frame {
            Some(Frame::Output(bytes)) => {
                let mut out = std::io::stdout().lock();
                out.write_all(&bytes).and_then(|()| out.flush()).context("the terminal can't be written to")?;
            }
            Some(Frame::Ended(code)) => {
                return Ok(AttachEnd::Ended(String::from_utf8_lossy(&code).parse().unwrap_or(-1)));
            }
            Some(Frame::Refused(why)) => bail!("{}", String::from_utf8_lossy(&why)),
            Some(_) => {}
            // The other side hangs up at once when the person lets go, perhaps before we have heard of that ourselves.
            None if let_go.load(Ordering::Acquire) => return Ok(AttachEnd::Detached),
            None => bail!("the program that runs it has ended, and the process with it"),
        }
    }
}

/// Passes on what is typed, and the terminal's size when that changes. Ends when the person lets go.
async fn typing(mut to: impl tokio::io::AsyncWrite + Unpin, mut keyboard: Keyboard, has_let_go: Arc<AtomicBool>) {
    while let Some(typed) = keyboard.next().await {
        let (frame, let_go) = match typed {
            TerminalInput::Keys(keys) => until_detach(keys),
            TerminalInput::Size(size) => match serde_json::to_vec(&size) {
                Ok(json) => (Frame::Size(json), false),
                Err(_) => continue,
            },
        };
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
fn until_detach(mut typed: Vec<u8>) -> (Frame, bool) {
    let end = typed.iter().position(|byte| *byte == LET_GO);
    typed.truncate(end.unwrap_or(typed.len()));
    (Frame::Input(typed), end.is_some())
}
