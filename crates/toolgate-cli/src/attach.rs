//! Attaches a person's terminal to a process of a running Toolgate. Every Toolgate that runs commands opens an
//! [`AttachSocket`], a Unix socket in a directory that only the user can enter and that no sandbox shows. Through the
//! socket, a client reaches running processes only, never a tool.

mod client;
mod frames;
mod socket;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use toolgate_contract::TerminalSize;

pub(crate) use client::{AttachEnd, attach};
pub(crate) use socket::AttachSocket;

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

/// Every process behind every socket in the directory. A socket that nothing listens on was left by a killed Toolgate,
/// and is removed.
#[allow(clippy::disallowed_methods, reason = "looks through the user's own sockets")]
pub(crate) async fn find_all(directory: &Path) -> Result<Vec<AttachTarget>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} can't be read", directory.display())),
    };
    let mut found = Vec::new();
    for socket in
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "sock"))
    {
        match connect(&socket).await {
            Ok(stream) => {
                // A Toolgate that is just exiting has nothing to list.
                let running = list(stream).await.unwrap_or_default();
                found.extend(running.into_iter().map(|running| AttachTarget { running, socket: socket.clone() }));
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(&socket);
            }
            Err(_) => {}
        }
    }
    Ok(found)
}

async fn list(mut stream: UnixStream) -> Result<Vec<AttachableProcess>> {
    write(&mut stream, &Frame::Request(serde_json::to_vec(&AttachRequest::List)?)).await?;
    match read(&mut stream).await? {
        Some(Frame::Processes(json)) => Ok(serde_json::from_slice(&json)?),
        _ => Ok(Vec::new()),
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
