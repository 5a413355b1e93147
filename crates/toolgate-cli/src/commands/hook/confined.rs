//! Hooks of a client that is confined as a whole. They run inside, where Toolgate's state is hidden; they are judged outside, by the
//! process that started the client, which listens on the sandbox's own way to one port of this machine. Whoever is inside can
//! only ask: a made-up event adds to the record, and no answer widens what the kernel holds.
#![allow(clippy::disallowed_methods, reason = "reads and writes the file that says where the judge is")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener as BlockingListener, TcpStream as BlockingStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolgate_hooks::{CommandPlace, HookOutput, HookedWorkspace, client_named};

use super::{HookRequest, answering, open_hooked_in};
use crate::commands::Invocation;
use crate::workspace::warn;

/// How long a hook waits for the judge: less than its own deadline.
const PATIENCE: Duration = Duration::from_secs(14);
/// How long a request may take to arrive. Others on this machine can connect too, and must not keep the client's own waiting.
const ARRIVES_WITHIN: Duration = Duration::from_secs(3);
/// The longest request, in bytes.
const MAX_REQUEST: u64 = 16 << 20;
/// Requests that are answered at the same time; more wait. Whoever is inside decides how many there are.
const AT_ONCE: usize = 16;
/// The name of the file that says where the judge is.
const FILE: &str = "judge.json";

/// Where the judge is, and what proves that somebody was told so by the judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct JudgeAddress {
    address: SocketAddr,
    token: String,
}

/// What a hook sends, on one line.
#[derive(Debug, Serialize, Deserialize)]
struct ConfinedRequest {
    token: String,
    request: HookRequest,
}

/// What the hook prints, or why nothing could be judged.
type JudgedEvent = Result<HookOutput, String>;

/// Asks the judge that the file names. Without an answer there is no decision, so the caller denies.
pub(super) fn ask(file: &Path, request: HookRequest) -> Result<HookOutput> {
    let unreachable = "the process that started the client can't be asked";
    let judge: JudgeAddress = serde_json::from_slice(&std::fs::read(file).context(unreachable)?)?;
    let mut stream = BlockingStream::connect(judge.address).context(unreachable)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let line = serde_json::to_string(&ConfinedRequest { token: judge.token, request })? + "\n";
    stream.write_all(line.as_bytes()).context(unreachable)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).context(unreachable)?;
    let answer: JudgedEvent =
        serde_json::from_slice(&answer).context("the process that started the client gave no answer")?;
    answer.map_err(|error| anyhow!("{error}"))
}

/// Who judges the hooks of one confined client.
#[derive(Debug)]
pub(in crate::commands) struct ConfinedJudge {
    listener: BlockingListener,
    address: JudgeAddress,
    file: PathBuf,
}

impl ConfinedJudge {
    /// Listens on a port of this machine, which a file in this directory names. The directory is private.
    pub(in crate::commands) fn bind(directory: &Path, token: String) -> Result<Self> {
        let listener = BlockingListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port can be listened on")?;
        listener.set_nonblocking(true)?;
        let address = JudgeAddress { address: listener.local_addr()?, token };
        let file = directory.join(FILE);
        std::fs::write(&file, serde_json::to_vec(&address)?)
            .with_context(|| format!("{} can't be written", file.display()))?;
        Ok(Self { listener, address, file })
    }

    /// The file that names it.
    pub(in crate::commands) fn file(&self) -> &Path {
        &self.file
    }

    /// The port that the client has to reach, as a host for `--connect`.
    pub(in crate::commands) fn host(&self) -> String {
        self.address.address.to_string()
    }

    /// Judges, and records everything in this run, until the task is dropped.
    pub(in crate::commands) fn start(&self, invocation: &Invocation, run: &str) -> Result<JudgingTask> {
        let place = CommandPlace::Confined { run: run.to_owned() };
        let hooked = Arc::new(open_hooked_in(invocation, place)?);
        let listener = TcpListener::from_std(self.listener.try_clone()?)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, self.address.token.clone(), Arc::clone(&hooked)));
        Ok(JudgingTask { tasks, hooked })
    }
}

/// A judge at work.
pub(in crate::commands) struct JudgingTask {
    tasks: JoinSet<()>,
    hooked: Arc<HookedWorkspace>,
}

impl JudgingTask {
    /// Ends with the client. Calls that it never told the end of end here.
    pub(in crate::commands) fn end(self) {
        drop(self.tasks);
        if let Err(error) = self.hooked.end_confined() {
            warn(&format!("calls of the client that had not ended can't be closed: {}", error.message));
        }
        self.hooked.workspace.finish();
    }
}

async fn serve(listener: TcpListener, token: String, hooked: Arc<HookedWorkspace>) {
    let (mut asking, permits) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (token, hooked) = (token.clone(), Arc::clone(&hooked));
        asking.spawn(async move {
            let _ = answer(stream, &token, &hooked).await;
            drop(permit);
        });
        while asking.try_join_next().is_some() {}
    }
}

/// Answers one event. Whoever gets no answer denies.
async fn answer(stream: TcpStream, token: &str, hooked: &HookedWorkspace) -> Result<()> {
    let _ = stream.set_nodelay(true);
    let (from, mut to) = stream.into_split();
    let mut line = Vec::new();
    let mut from = BufReader::new(from.take(MAX_REQUEST));
    tokio::time::timeout(ARRIVES_WITHIN, from.read_until(b'\n', &mut line)).await??;
    let asked: ConfinedRequest = serde_json::from_slice(&line)?;
    // Others on this machine reach the port as well.
    let known = client_named(&asked.request.client).filter(|_| asked.token == token);
    let client = known.context("it isn't for this judge")?;
    let judged = answering::answer_request(hooked, client, &asked.request).await;
    let judged: JudgedEvent = judged.map_err(|error| format!("{error:#}"));
    to.write_all(&serde_json::to_vec(&judged)?).await?;
    Ok(())
}
