//! What the command reads and writes. Who sits at a terminal gets one for it too; else it is given what came as pipe or file,
//! and its output goes where ours does.

use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::io::AsyncReadExt;
use toolgate_contract::{ChildProcess, LaunchSpec, Output, Streams, ToolError};
use toolgate_sandbox::process::Child;

use crate::terminal::{Keyboard, RawMode, TerminalInput, stdout_size};

/// A piece of what passes at a time.
const PIECE: usize = 64 * 1024;

/// Gives the command streams like our own.
pub(super) fn inherit_streams(mut spec: LaunchSpec) -> LaunchSpec {
    spec.streams = match stdin().is_terminal() {
        true if stdout().is_terminal() && stderr().is_terminal() => {
            spec.environment.extend(std::env::var_os("TERM").map(|term| ("TERM".into(), term)));
            Streams::Terminal(stdout_size().unwrap_or_default())
        }
        // Whoever reads what it writes, such as a pager, has the keyboard for itself.
        true => Streams::Output,
        false => Streams::Input,
    };
    spec
}

/// Hands on what comes in and what the command writes, until it writes no more.
pub(super) async fn forward_streams(child: &Arc<Child>, streams: Streams) -> Result<()> {
    match streams {
        Streams::Terminal(_) => forward_terminal(child).await,
        Streams::Output => show(child).await.context(NOT_PASSED_ON),
        Streams::Input => {
            // Not waited for: a command may end before its input does.
            let feeding = tokio::spawn(feed(Arc::clone(child)));
            let shown = show(child).await;
            feeding.abort();
            shown.context(NOT_PASSED_ON)
        }
    }
}

const NOT_PASSED_ON: &str = "the command's output can't be passed on";

/// Passes on what was piped in. Its end, or that nobody reads it any more, is the end of this.
async fn feed(child: Arc<Child>) -> Result<(), ToolError> {
    let (mut from, mut piece) = (tokio::io::stdin(), vec![0; PIECE]);
    loop {
        match from.read(&mut piece).await.unwrap_or(0) {
            0 => return child.close_input().await,
            count => child.write(&piece[..count]).await?,
        }
    }
}

/// Shows what the command writes, on the stream that it writes it to.
async fn show(child: &Child) -> std::io::Result<()> {
    while let Some(piece) = child.output().await {
        match piece {
            Output::Out(bytes) => stdout().write_all(&bytes).and_then(|()| stdout().flush())?,
            Output::Err(bytes) => stderr().write_all(&bytes).and_then(|()| stderr().flush())?,
        }
    }
    Ok(())
}

/// Makes the person's terminal the command's, until everybody has left that.
async fn forward_terminal(child: &Child) -> Result<()> {
    let _raw = RawMode::begin()?;
    let keyboard = Keyboard::new()?;
    // Side by side, since a command that is busy writing may not read meanwhile.
    tokio::select! {
        typed = forward_input(child, keyboard) => typed.map_err(anyhow::Error::from),
        shown = show(child) => shown.map_err(anyhow::Error::from),
    }
    .context("the command's terminal can't be passed on")
}

/// Passes on keys and sizes. It is never what ends first: who has nothing more to type still wants to see.
async fn forward_input(child: &Child, mut keyboard: Keyboard) -> Result<(), ToolError> {
    while let Some(typed) = keyboard.next().await {
        match typed {
            TerminalInput::Size(size) => child.resize(size)?,
            TerminalInput::Keys(keys) => child.write(&keys).await?,
        }
    }
    std::future::pending().await
}
