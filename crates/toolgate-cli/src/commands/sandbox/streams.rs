//! The streams of the command. If all of ours are a terminal, the command gets a terminal too. Otherwise it gets what is piped
//! to our standard input, and its output goes to ours.

use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Signal, kill_current_process_group};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use toolgate_contract::{ChildProcess, LaunchSpec, Output, Streams, ToolError};
use toolgate_sandbox::process::Child;

use crate::terminal::{Keyboard, RawMode, TerminalInput, stdout_size};

/// How long a program that was told to stop goes on, at the most.
const NOT_STOPPED: Duration = Duration::from_millis(300);
/// Bytes that are copied at a time.
const PIECE: usize = 64 * 1024;

/// Gives the command streams like our own.
pub(super) fn inherit_streams(mut spec: LaunchSpec) -> LaunchSpec {
    spec.streams = match stdin().is_terminal() {
        true if stdout().is_terminal() && stderr().is_terminal() => {
            spec.environment.extend(std::env::var_os("TERM").map(|term| ("TERM".into(), term)));
            spec.is_job = true;
            Streams::Terminal(stdout_size().unwrap_or_default())
        }
        // A program that reads our output, such as a pager, needs the keyboard for itself.
        true => Streams::Output,
        false => Streams::Input,
    };
    spec
}

/// Forwards our input to the command and its output to ours, until its output ends.
pub(super) async fn forward_streams(child: &Arc<Child>, streams: Streams) -> Result<()> {
    match streams {
        Streams::Terminal(_) => forward_terminal(child).await,
        Streams::Output => show(child).await.context(NOT_PASSED_ON),
        Streams::Input => {
            // Not awaited: a command may end before its input does.
            let feeding = tokio::spawn(feed(Arc::clone(child)));
            let shown = show(child).await;
            feeding.abort();
            shown.context(NOT_PASSED_ON)
        }
    }
}

const NOT_PASSED_ON: &str = "the command's output can't be passed on";

/// Forwards standard input until it ends, or the command no longer reads it.
async fn feed(child: Arc<Child>) -> Result<(), ToolError> {
    let (mut from, mut piece) = (tokio::io::stdin(), vec![0; PIECE]);
    loop {
        match from.read(&mut piece).await.unwrap_or(0) {
            0 => return child.close_input().await,
            count => child.write(&piece[..count]).await?,
        }
    }
}

/// Writes the command's output to the same stream of ours.
async fn show(child: &Child) -> std::io::Result<()> {
    while let Some(piece) = child.output().await {
        match piece {
            Output::Out(bytes) => stdout().write_all(&bytes).and_then(|()| stdout().flush())?,
            Output::Err(bytes) => stderr().write_all(&bytes).and_then(|()| stderr().flush())?,
        }
    }
    Ok(())
}

/// Connects the person's terminal to the command's, until no process has the command's open any more.
async fn forward_terminal(child: &Child) -> Result<()> {
    let mut raw = RawMode::begin()?;
    let (typed, shown) = (forward_input(child, Keyboard::new()?), show(child));
    tokio::pin!(typed, shown);
    // At the same time, since a command that is busy writing may not read.
    loop {
        let ended = tokio::select! {
            typed = &mut typed => typed.map_err(anyhow::Error::from),
            shown = &mut shown => shown.map_err(anyhow::Error::from),
            () = child.stopped() => {
                stop_too(child, &mut raw).await?;
                continue;
            }
        };
        return ended.context("the command's terminal can't be passed on");
    }
}

/// Stops this program as the command was stopped, so that the person's shell has the terminal; then continues both. Where no shell
/// could continue this program, the kernel doesn't stop it, and the command goes on at once.
async fn stop_too(child: &Child, raw: &mut Option<RawMode>) -> Result<()> {
    let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
    raw.take();
    kill_current_process_group(Signal::TSTP).context("this program can't be stopped")?;
    // Another thread may be the one that is stopped first, so nothing is done until it is over.
    let _ = timeout(NOT_STOPPED, continued.recv()).await;
    *raw = RawMode::begin()?;
    if let Some(size) = stdout_size() {
        child.resize(size)?;
    }
    // It may have ended meanwhile.
    let _ = child.signal(toolgate_contract::Signal::Cont);
    Ok(())
}

/// Forwards keys and sizes. It never ends first: a person without further input still wants to see the output.
async fn forward_input(child: &Child, mut keyboard: Keyboard) -> Result<(), ToolError> {
    while let Some(typed) = keyboard.next().await {
        match typed {
            TerminalInput::Size(size) => child.resize(size)?,
            TerminalInput::Keys(keys) => child.write(&keys).await?,
        }
    }
    std::future::pending().await
}
