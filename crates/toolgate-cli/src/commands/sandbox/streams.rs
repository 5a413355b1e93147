//! The streams of the command. If all of ours are a terminal, the command gets a terminal too. Otherwise it gets what is piped
//! to our standard input, and its output goes to ours.

use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::io::AsyncReadExt;
use toolgate_contract::{ChildProcess, LaunchSpec, Output, Streams, ToolError};
use toolgate_sandbox::process::Child;

use crate::terminal::{Keyboard, RawMode, TerminalInput, stdout_size};

/// Bytes that are copied at a time.
const PIECE: usize = 64 * 1024;

/// Gives the command streams like our own.
pub(super) fn inherit_streams(mut spec: LaunchSpec) -> LaunchSpec {
    spec.streams = match stdin().is_terminal() {
        true if stdout().is_terminal() && stderr().is_terminal() => {
            spec.environment.extend(std::env::var_os("TERM").map(|term| ("TERM".into(), term)));
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
    let _raw = RawMode::begin()?;
    let keyboard = Keyboard::new()?;
    // At the same time, since a command that is busy writing may not read.
    tokio::select! {
        typed = forward_input(child, keyboard) => typed.map_err(anyhow::Error::from),
        shown = show(child) => shown.map_err(anyhow::Error::from),
    }
    .context("the command's terminal can't be passed on")
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
