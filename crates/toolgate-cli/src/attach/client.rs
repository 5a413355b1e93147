//! The client side: the person's terminal becomes the process' terminal until they detach.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt;

use super::frames::{Frame, read, write};
use super::{AttachRequest, AttachTarget, connect};
use crate::terminal::{Keyboard, RawMode, TerminalInput, stdout_size};

/// Ctrl-] detaches.
const DETACH_KEY: u8 = 0x1d;

/// Why the attachment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachEnd {
    /// The person detached; the process keeps running.
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
    let has_detached = Arc::new(AtomicBool::new(false));
    let typing = tokio::spawn(typing(to, Keyboard::new()?, Arc::clone(&has_detached)));
    let left = watching(&mut from, typing, &has_detached).await;
    drop(raw);
    left
}

/// Shows what the process writes until it ends or the person detaches.
async fn watching(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    mut typing: tokio::task::JoinHandle<()>,
    detached: &AtomicBool,
) -> Result<AttachEnd> {
    let mut is_typing = true;
    loop {
        let frame = tokio::select! {
            // At the end of the input, the person may still want to watch.
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
            // The server closes the connection as soon as the person detaches, perhaps before this task sees the flag.
            None if detached.load(Ordering::Acquire) => return Ok(AttachEnd::Detached),
            None => bail!("the program that runs it has ended, and the process with it"),
        }
    }
}

/// Forwards keys, and the terminal's size when it changes. Ends when the person detaches.
async fn typing(mut to: impl tokio::io::AsyncWrite + Unpin, mut keyboard: Keyboard, has_detached: Arc<AtomicBool>) {
    while let Some(typed) = keyboard.next().await {
        let (frame, detached) = match typed {
            TerminalInput::Keys(keys) => until_detach(keys),
            TerminalInput::Size(size) => match serde_json::to_vec(&size) {
                Ok(json) => (Frame::Size(json), false),
                Err(_) => continue,
            },
        };
        if write(&mut to, &frame).await.is_err() || detached {
            has_detached.store(detached, Ordering::Release);
            let _ = to.shutdown().await;
            break;
        }
    }
    if !std::io::stdin().is_terminal() {
        // All piped input was forwarded; there is no frame for the end of input.
        std::future::pending::<()>().await;
    }
}

/// The input before the detach key, and whether the key was pressed.
fn until_detach(mut typed: Vec<u8>) -> (Frame, bool) {
    let end = typed.iter().position(|byte| *byte == DETACH_KEY);
    typed.truncate(end.unwrap_or(typed.len()));
    (Frame::Input(typed), end.is_some())
}
