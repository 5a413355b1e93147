//! What the command reads and writes. Who sits at a terminal gets one for it too; else it is given what came as pipe or file,
//! and its output goes where ours does.

use std::io::{IsTerminal, Write, stderr, stdin, stdout};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use toolgate_sandbox::process::{Child, CommandSpec, PtyMaster, PtySize, StandardStreams};

use crate::terminal::{Keyboard, RawMode, TerminalInput, stdout_size};

/// A piece of what passes at a time.
const PIECE: usize = 64 * 1024;

/// Gives the command streams like our own.
pub(super) fn inherit_streams(command: &mut CommandSpec) {
    command.streams = match stdin().is_terminal() {
        true if stdout().is_terminal() && stderr().is_terminal() => {
            let term = std::env::var_os("TERM").unwrap_or_else(|| "xterm-256color".into());
            command.environment.insert("TERM".into(), term);
            StandardStreams::Terminal(stdout_size().map_or(PtySize { rows: 24, columns: 80 }, size))
        }
        // Whoever reads what it writes, such as a pager, has the keyboard for itself.
        true => StandardStreams::Output,
        false => StandardStreams::Interactive,
    };
}

fn size(own: toolgate_contract::TerminalSize) -> PtySize {
    PtySize { rows: own.rows, columns: own.columns }
}

/// Hands on what comes in and what the command writes, until it writes no more.
pub(super) async fn forward_streams(running: &mut Child) -> Result<()> {
    if let Some(terminal) = running.terminal.take() {
        return forward_terminal(&terminal).await;
    }
    let (Some(out), Some(err)) = (running.stdout.take(), running.stderr.take()) else {
        bail!("The command has no output.")
    };
    // Not waited for: a command may end before its input does.
    let feeding = running.stdin.take().map(|to| tokio::spawn(feed(to)));
    let passed = tokio::try_join!(copy(out, stdout()), copy(err, stderr()));
    feeding.inspect(|feeding| feeding.abort());
    passed.context("the command's output can't be passed on")?;
    Ok(())
}

/// Passes on what was piped in. Its end, or that nobody reads it any more, is the end of this.
async fn feed(mut to: impl tokio::io::AsyncWrite + Unpin) -> std::io::Result<()> {
    let (mut from, mut piece) = (tokio::io::stdin(), vec![0; PIECE]);
    loop {
        match from.read(&mut piece).await? {
            0 => return Ok(()),
            count => to.write_all(&piece[..count]).await?,
        }
    }
}

async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl Write) -> std::io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece).await? {
            0 => return Ok(()),
            count => to.write_all(&piece[..count]).and_then(|()| to.flush())?,
        }
    }
}

/// Makes the person's terminal the command's, until everybody has left that.
async fn forward_terminal(terminal: &PtyMaster) -> Result<()> {
    let _raw = RawMode::begin()?;
    let keyboard = Keyboard::new()?;
    // Side by side, since a command that is busy writing may not read meanwhile.
    tokio::select! {
        typed = forward_input(terminal, keyboard) => typed,
        shown = show(terminal) => shown,
    }
    .context("the command's terminal can't be passed on")
}

async fn show(terminal: &PtyMaster) -> std::io::Result<()> {
    let (mut to, mut piece) = (stdout(), vec![0; PIECE]);
    loop {
        match terminal.read(&mut piece).await? {
            0 => return Ok(()),
            count => to.write_all(&piece[..count]).and_then(|()| to.flush())?,
        }
    }
}

/// Passes on keys and sizes. It is never what ends first: who has nothing more to type still wants to see.
async fn forward_input(terminal: &PtyMaster, mut keyboard: Keyboard) -> std::io::Result<()> {
    while let Some(typed) = keyboard.next().await {
        match typed {
            TerminalInput::Size(own) => terminal.resize(size(own))?,
            TerminalInput::Keys(keys) => {
                let mut left = &keys[..];
                while !left.is_empty() {
                    left = &left[terminal.write(left).await?..];
                }
            }
        }
    }
    std::future::pending().await
}
