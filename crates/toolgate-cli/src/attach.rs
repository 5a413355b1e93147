//! Attaches a person's terminal to a process of a running Toolgate. Every Toolgate that runs commands opens an
//! [`AttachSocket`], a Unix socket in a directory that only the user can enter and that no sandbox shows. Through the
//! socket, a client reaches running processes only, never a tool.

mod client;
mod elsewhere;
mod frames;
mod socket;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use toolgate_console::ProcessControl;
use toolgate_contract::TerminalSize;

pub(crate) use client::{AttachEnd, attach};
pub(crate) use elsewhere::ProcessesElsewhere;
pub(crate) use socket::{AttachSocket, ServedProcesses};

use frames::{Frame, read, write};

/// A client's request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AttachRequest {
    /// List the running processes.
    List,
    /// Attach to one.
    Attach {
        process: String,
        /// The size of the person's terminal, if there is one.
        size: Option<TerminalSize>,
        /// The person's name, for the record.
        by: String,
    },
    /// List the processes of one workspace, as the console shows them.
    ListOf { workspace: String },
    /// Show what a process shows.
    Show { process: String, workspace: String },
    /// Do something with a process, without attaching to it.
    Act {
        process: String,
        workspace: String,
        action: ProcessControl,
        /// The person's name, for the record.
        by: String,
    },
}

/// A running process, as listed to the person.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttachableProcess {
    pub(crate) process: String,
    pub(crate) session: String,
    pub(crate) command: String,
    pub(crate) tty: bool,
    pub(crate) started: String,
}

/// A process, and the socket that leads to it.
#[derive(Debug, Clone)]
pub(crate) struct AttachTarget {
    pub(crate) running: AttachableProcess,
    socket: PathBuf,
}

/// Every process behind every socket in the directory.
pub(crate) async fn find_all(directory: &Path) -> Result<Vec<AttachTarget>> {
    let mut found = Vec::new();
    for socket in sockets(directory)? {
        // A Toolgate that is just exiting has nothing to list.
        let Some(stream) = connect_or_remove(&socket).await else { continue };
        let running: Vec<AttachableProcess> = ask(stream, &AttachRequest::List).await.unwrap_or_default();
        found.extend(running.into_iter().map(|running| AttachTarget { running, socket: socket.clone() }));
    }
    Ok(found)
}

#[allow(clippy::disallowed_methods, reason = "looks through the user's own sockets")]
fn sockets(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} can't be read", directory.display())),
    };
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|kind| kind == "sock")).collect())
}

/// A connection to the program behind a socket. One that nothing listens on was left by a killed Toolgate, and is removed.
#[allow(clippy::disallowed_methods, reason = "removes the user's own socket")]
async fn connect_or_remove(socket: &Path) -> Option<UnixStream> {
    let connected = connect(socket).await;
    if connected.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
        let _ = std::fs::remove_file(socket);
    }
    connected.ok()
}

/// What a program answers to a request that has one answer.
async fn ask<T: DeserializeOwned>(mut stream: UnixStream, request: &AttachRequest) -> Result<T> {
    write(&mut stream, &Frame::Request(serde_json::to_vec(request)?)).await?;
    match read(&mut stream).await? {
        Some(Frame::Processes(json)) => Ok(serde_json::from_slice(&json)?),
        Some(Frame::Refused(why)) => bail!("{}", String::from_utf8_lossy(&why)),
        _ => bail!("the program that runs it doesn't answer"),
    }
}

/// Connects through the directory's descriptor, since the path of a Unix socket is limited to about a hundred bytes.
#[allow(clippy::disallowed_methods, reason = "opens the user's own directory of sockets")]
async fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let directory = std::fs::File::open(socket.parent().unwrap_or(socket))?;
    UnixStream::connect(socket_path(&directory, socket)).await
}

fn socket_path(directory: &std::fs::File, socket: &Path) -> PathBuf {
    use std::os::fd::AsRawFd;
    let name = socket.file_name().unwrap_or_default();
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
}
