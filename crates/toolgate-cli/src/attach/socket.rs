//! The server side: the socket of a program that runs commands.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncRead;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use toolgate_contract::{ProcessHandle, TerminalSize, ToolError};
use toolgate_runtime::{ProcessRegistries, ProcessView, SessionProcess};
use toolgate_workspace::{Workspace, WorkspaceLocation, create_private_directory};

use super::frames::{Frame, read, write};
use super::{AttachRequest, AttachableProcess, socket_path};

/// How long attached clients may take to receive the end of a process.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A socket to the processes of this program. Dropping it disconnects every client.
pub(crate) struct AttachSocket {
    socket: PathBuf,
    task: JoinHandle<()>,
    closing: Option<oneshot::Sender<()>>,
}

impl AttachSocket {
    /// Opens the socket in the user's own directory. Only the user can enter that directory, and only the user may
    /// connect.
    #[allow(clippy::disallowed_methods, reason = "makes a socket in the user's own directory")]
    pub(crate) fn open(directory: &Path, served: ServedProcesses) -> io::Result<Self> {
        create_private_directory(directory)?;
        let socket = directory.join(format!("{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(socket_path(&std::fs::File::open(directory)?, &socket))?;
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o600))?;
        let (closing, closed) = oneshot::channel();
        Ok(Self { socket, task: tokio::spawn(listen(listener, Arc::new(served), closed)), closing: Some(closing) })
    }

    /// Stops accepting clients, and tells attached clients that their process has ended.
    pub(crate) async fn close(mut self) {
        drop(self.closing.take());
        let _ = (&mut self.task).await;
    }
}

impl Drop for AttachSocket {
    #[allow(clippy::disallowed_methods, reason = "removes the socket that it made")]
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// The processes that are reached through the socket.
pub(crate) struct ServedProcesses {
    workspace: String,
    registries: Arc<ProcessRegistries>,
    /// The processes that somebody typed into or stopped, each with who it was: that is recorded once.
    attached: Mutex<HashSet<(String, String)>>,
}

impl ServedProcesses {
    pub(crate) fn of(workspace: &Workspace, location: &WorkspaceLocation) -> Self {
        let (workspace, registries) = (location.directory.display().to_string(), workspace.gate.registries());
        Self { workspace, registries, attached: Mutex::default() }
    }

    fn find(&self, process: &str) -> Option<Arc<SessionProcess>> {
        self.registries.running().into_iter().find(|entry| entry.facts().id == process)
    }

    /// Answers a request of a console: the processes that it is about, none if this program has none of them.
    async fn answer(&self, request: AttachRequest) -> Result<Vec<ProcessView>, ToolError> {
        let of_here = |workspace: &str, process: &str| self.find(process).filter(|_| workspace == self.workspace);
        match request {
            AttachRequest::ListOf { workspace } if workspace == self.workspace => {
                Ok(self.registries.running().iter().map(|entry| ProcessView::of(entry)).collect())
            }
            AttachRequest::Show { process, workspace } => {
                Ok(of_here(&workspace, &process).iter().map(|entry| ProcessView::with_screen(entry)).collect())
            }
            AttachRequest::Act { process, workspace, action, by } => {
                let Some(entry) = of_here(&workspace, &process) else { return Ok(Vec::new()) };
                if self.attached.lock().insert((process, by.clone())) {
                    drop(entry.follow(&by));
                }
                action.apply(&entry).await?;
                Ok(vec![ProcessView::of(&entry)])
            }
            _ => Ok(Vec::new()),
        }
    }
}

async fn listen(listener: UnixListener, served: Arc<ServedProcesses>, mut closed: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
            Some(_) = connections.join_next() => continue,
            _ = &mut closed => break,
        };
        let is_the_user = stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw());
        if is_the_user {
            connections.spawn(serve(stream, Arc::clone(&served)));
        }
    }
    drop(listener);
    let _ = timeout(CLOSE_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await;
}

/// Serves one client. An error ends only this connection.
async fn serve(stream: UnixStream, served: Arc<ServedProcesses>) -> Option<()> {
    let (mut from, mut to) = stream.into_split();
    let Frame::Request(json) = read(&mut from).await.ok()?? else { return None };
    match serde_json::from_slice(&json).ok()? {
        AttachRequest::List => {
            let running: Vec<AttachableProcess> =
                served.registries.running().iter().map(|entry| listed(entry)).collect();
            write(&mut to, &Frame::Processes(serde_json::to_vec(&running).ok()?)).await.ok()
        }
        AttachRequest::Attach { process, size, by } => match served.find(&process) {
            Some(entry) => forward(&entry, size, &by, from, &mut to).await.ok(),
            None => write(&mut to, &Frame::Refused(b"The process has ended.".to_vec())).await.ok(),
        },
        request => {
            let answer = match served.answer(request).await {
                Ok(processes) => Frame::Processes(serde_json::to_vec(&processes).ok()?),
                Err(error) => Frame::Refused(error.message.into_bytes()),
            };
            write(&mut to, &answer).await.ok()
        }
    }
}

fn listed(entry: &SessionProcess) -> AttachableProcess {
    let facts = entry.facts();
    AttachableProcess {
        process: facts.id.clone(),
        session: entry.session.clone(),
        command: facts.command.clone(),
        tty: facts.terminal,
        started: facts.started.to_string(),
    }
}

/// Forwards input and output until the client or the process ends.
async fn forward(
    entry: &SessionProcess,
    size: Option<TerminalSize>,
    by: &str,
    from: impl AsyncRead + Unpin + Send + 'static,
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
) -> io::Result<()> {
    if let Some(size) = size {
        // A process without a terminal has no size.
        let _ = entry.resize(size);
    }
    let Some((before, mut follow)) = entry.follow(by) else {
        return write(to, &Frame::Refused(b"The process has ended.".to_vec())).await;
    };
    write(to, &Frame::Output(before)).await?;
    let mut input = frames_of(from);
    loop {
        tokio::select! {
            frame = input.recv() => match frame {
                Some(Frame::Input(bytes)) => {
                    // A process that has no input, or doesn't read it, can still be watched.
                    let _ = entry.write(&bytes).await;
                }
                Some(Frame::Size(json)) => {
                    let _ = serde_json::from_slice(&json).map(|size| entry.resize(size));
                }
                Some(_) | None => return Ok(()),
            },
            piece = follow.next() => match piece {
                Some(bytes) => write(to, &Frame::Output(bytes)).await?,
                None => break,
            },
        }
    }
    entry.ended().await;
    let code = entry.progress().borrow().end.as_ref().and_then(|end| end.code.clone().ok());
    write(to, &Frame::Ended(code.unwrap_or(-1).to_string().into_bytes())).await
}

/// Reads frames on a separate task, since a read must not be cancelled in the middle of a frame.
fn frames_of(mut from: impl AsyncRead + Unpin + Send + 'static) -> mpsc::Receiver<Frame> {
    let (sender, receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok(Some(frame)) = read(&mut from).await {
            if sender.send(frame).await.is_err() {
                return;
            }
        }
    });
    receiver
}
