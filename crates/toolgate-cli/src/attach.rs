//! A person takes hold of a process of a running Toolgate from another terminal. Whoever runs commands opens a [`AttachSocket`]: a
//! socket in a directory that is the user's alone and that no sandbox shows. Behind it is no way to a tool, only to processes
//! that are there already.

mod client;
mod frames;
mod socket;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use toolgate_contract::TerminalSize;

pub(crate) use client::{AttachEnd, attach};
pub(crate) use socket::{AttachSocket, create_private_directory};

use frames::{Frame, read, write};

/// What is asked at a door.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AttachRequest {
    /// Which processes run.
    List,
    /// To take hold of one.
    Attach {
        process: String,
        /// The size of the person's terminal, where there is one.
        size: Option<TerminalSize>,
        /// Who they are, for the record.
        by: String,
    },
}

/// A process that runs, as a person chooses it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttachableProcess {
    pub(crate) process: String,
    pub(crate) session: String,
    pub(crate) command: String,
    pub(crate) tty: bool,
    pub(crate) started: String,
}

/// A process, and the door that leads to it.
#[derive(Debug, Clone)]
pub(crate) struct AttachTarget {
    pub(crate) running: AttachableProcess,
    socket: PathBuf,
}

/// Every process behind every door in the directory. A socket with nobody behind it is left from one who was killed, and goes.
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
                // One that is just leaving has nothing to offer.
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

/// Connects by way of the directory's descriptor, since the path of a socket may have no more than a hundred bytes.
#[allow(clippy::disallowed_methods, reason = "opens the user's own directory of sockets")]
async fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let directory = std::fs::File::open(socket.parent().unwrap_or(socket))?;
    UnixStream::connect(short(&directory, socket)).await
}

fn short(directory: &std::fs::File, socket: &Path) -> PathBuf {
    use std::os::fd::AsRawFd;
    let name = socket.file_name().unwrap_or_default();
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
}
