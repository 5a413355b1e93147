//! The helper: a process that keeps a workspace open and answers hooks on a Unix socket, so that a hook doesn't open it anew for
//! every call. It is started by the first hook and ends when no event came for a while. Where it can't be asked, the hook judges
//! by itself.
#![allow(
    clippy::disallowed_methods,
    reason = "makes a socket in the user's own directory, and starts this very program"
)]

use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as BlockingStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use toolgate_contract::sha256;
use toolgate_hooks::{HookOutput, HookedWorkspace, client_named};
use toolgate_workspace::create_private_directory;

use super::{HookRequest, answering, open_hooked, own_words};
use crate::commands::{Invocation, block_on};
use crate::exit::Exit;

/// The helper ends when no event came for this long.
const IDLE: Duration = Duration::from_secs(300);
/// How long a hook waits for the helper; then it judges by itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest event, in bytes.
const MAX_EVENT: u64 = 64 << 20;
/// With this variable set to `off`, hooks start no helper.
const SWITCH: &str = "TOOLGATE_HOOK_HELPER";

/// The socket of the helper for this workspace, these flags and this build of the program.
fn socket(invocation: &Invocation) -> Result<PathBuf> {
    let program = std::env::current_exe()?.metadata()?;
    let build = format!("{} {} {}", program.ino(), program.size(), program.mtime_nsec());
    let of = sha256(format!("{:?} {build}", own_words(invocation)?));
    Ok(invocation.location.config.attach_sockets().join("hooks").join(format!("{}.sock", &of[..24])))
}

/// Asks the helper; none if it can't answer, for whatever reason.
pub(super) fn ask(invocation: &Invocation, request: &HookRequest) -> Option<HookOutput> {
    let mut stream = BlockingStream::connect(socket(invocation).ok()?).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(&serde_json::to_vec(request).ok()?).ok()?;
    stream.shutdown(std::net::Shutdown::Write).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    serde_json::from_slice(&answer).ok()
}

/// Starts the helper for the events to come. Nothing depends on it.
pub(super) fn start(invocation: &Invocation) {
    if std::env::var_os(SWITCH).is_some_and(|value| value == "off") {
        return;
    }
    let Ok(words) = own_words(invocation) else { return };
    let mut helper = std::process::Command::new(&words[0]);
    helper.args(&words[1..]).args(["hook", "serve"]).process_group(0).current_dir("/");
    let _ = helper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// Answers events until none came for a while.
pub(super) fn serve(invocation: &Invocation) -> Result<Exit> {
    let socket = socket(invocation)?;
    let directory = socket.parent().context("the socket has no directory")?;
    create_private_directory(directory)?;
    if BlockingStream::connect(&socket).is_ok() {
        // Another hook was faster.
        return Ok(Exit::Ok);
    }
    let _ = std::fs::remove_file(&socket);
    block_on(async {
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o600))?;
        let mut open = OpenedHooks::open(invocation)?;
        while let Ok(accepted) = timeout(IDLE, listener.accept()).await {
            let Ok((stream, _)) = accepted else { continue };
            let is_the_user = stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw());
            if !is_the_user {
                continue;
            }
            open = open.current(invocation)?;
            tokio::spawn(answer(stream, Arc::clone(&open.hooked)));
        }
        let _ = std::fs::remove_file(&socket);
        anyhow::Ok(())
    })??;
    Ok(Exit::Ok)
}

/// A workspace as it was opened, with the configuration of that moment.
struct OpenedHooks {
    hooked: Arc<HookedWorkspace>,
    configuration: String,
}

impl OpenedHooks {
    fn open(invocation: &Invocation) -> Result<Self> {
        let configuration = configuration(invocation)?;
        Ok(Self { hooked: Arc::new(open_hooked(invocation)?), configuration })
    }

    /// The workspace by the rules of now. A helper whose workspace can't be opened any more ends.
    fn current(self, invocation: &Invocation) -> Result<Self> {
        match configuration(invocation)? == self.configuration {
            true => Ok(self),
            false => Self::open(invocation),
        }
    }
}

/// Everything that configuration says now.
fn configuration(invocation: &Invocation) -> Result<String> {
    Ok(format!("{:?}", invocation.location.layers()?))
}

/// Answers one event. Without an answer, the hook judges by itself.
async fn answer(stream: UnixStream, hooked: Arc<HookedWorkspace>) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut bytes = Vec::new();
    from.take(MAX_EVENT).read_to_end(&mut bytes).await?;
    let Ok(request) = serde_json::from_slice::<HookRequest>(&bytes) else { return Ok(()) };
    let Some(client) = client_named(&request.client) else { return Ok(()) };
    if let Ok(output) = answering::answer_request(&hooked, client, &request).await {
        to.write_all(&serde_json::to_vec(&output)?).await?;
    }
    Ok(())
}
