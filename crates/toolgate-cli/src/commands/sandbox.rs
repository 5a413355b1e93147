//! `toolgate sandbox`: runs a command the way an agent's command would run, from the shell.

mod in_place;
pub(super) mod preview;
mod report;
mod streams;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use tokio::task::block_in_place;
use toolgate_contract::{
    ApplyMode, Blob, ChildProcess, Files, HiddenPaths, LaunchSpec, NetworkAccess, ProcessLauncher, RestrictedPaths,
    ToolError, WorkspacePath, reported_denials,
};
use toolgate_policy::{CompiledConfig, Policy, plain_host};
use toolgate_runtime::{CallEgress, HiddenPathScanner};
use toolgate_sandbox::SandboxedProcesses;
use toolgate_sandbox::process::{Child, SandboxError, SandboxOptions};
use toolgate_workspace::sandboxed_processes;

use self::in_place::WatchedCommand;
use self::report::SandboxReport;
use super::hook::confined::{ConfinedJudge, JudgingTask};
use super::{Invocation, block_on};
use crate::exit::Exit;

/// Run a command in the sandbox that agents' commands run in. Nothing is judged: it is you who asks.
///
/// It reads what you pipe in; where you sit at a terminal, it has one too. It changes the workspace in place, and its changes are
/// recorded, so that `toolgate undo` covers them. What it leaves and git, your shell, editors or agents would run or load
/// automatically, such as hooks, `.envrc` or `.mcp.json`, and files that are setuid, is quarantined when it ends; with
/// `--no-quarantine` it stays, and nothing is recorded. With `--json`, the last line on standard error is an object that says
/// how it ended and what held.
///
/// Examples:
///   toolgate sandbox -- cargo test
///   toolgate sandbox -- bash
///   toolgate sandbox -- sh -c 'curl example.com; ls ~'
///   git diff | toolgate sandbox -- ./review.py
///   toolgate sandbox --connect registry.npmjs.org -- npm ci
///   toolgate sandbox --connect db.example.com:5432 --connect '*.example.org' -- ./migrate
///   toolgate sandbox --rehearse -- sed -i s/a/b/ notes.md    (shows what would change, and changes nothing)
///   toolgate sandbox --commit -- sed -i s/a/b/ notes.md      (shows it, then applies it as one undoable change)
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SandboxArgs {
    /// Let it reach this host: a name, `*.example.com`, an address or a range; with a port beside 80 and 443 as HOST:PORT.
    /// A server on this machine needs its port: `localhost:8080`.
    #[arg(long, value_name = "HOST")]
    connect: Vec<String>,
    /// Let it reach whatever this machine can.
    #[arg(long, conflicts_with = "connect")]
    network: bool,
    /// Stage its changes and show them: the workspace stays as it is until `toolgate commit`.
    #[arg(long)]
    rehearse: bool,
    /// Stage its changes, show them, and apply them if it succeeds.
    #[arg(long, conflicts_with = "rehearse")]
    commit: bool,
    /// Leave everything that it makes in the workspace, and record nothing.
    #[arg(long, conflicts_with_all = ["rehearse", "commit"])]
    no_quarantine: bool,
    /// Say afterwards what held.
    #[arg(long, short)]
    verbose: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// What a client has beside the workspace.
    #[arg(skip)]
    client: ClientState,
}

/// What a client that runs here as a whole has beside the workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientState {
    /// Files and directories of its own, which it can change.
    pub(super) writable: Vec<PathBuf>,
    /// What of that it can't change.
    pub(super) protected: Vec<PathBuf>,
    /// What it is installed as, beside the program itself.
    pub(super) readable: Vec<PathBuf>,
    /// Variables that it is configured by.
    pub(super) environment: BTreeMap<OsString, OsString>,
    /// Files that it sees with another content, and can't change.
    pub(super) replaced: Vec<(PathBuf, Blob)>,
    /// Who judges its hooks.
    pub(super) judge: Option<Arc<ConfinedJudge>>,
}

impl SandboxArgs {
    /// A command in place that can reach these hosts, and has this beside the workspace.
    pub(super) fn confining(command: Vec<OsString>, connect: Vec<String>, verbose: bool, client: ClientState) -> Self {
        let (network, rehearse, commit, no_quarantine) = (false, false, false, false);
        Self { connect, network, rehearse, commit, no_quarantine, verbose, command, client }
    }

    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let hosts = self.connect.iter().map(|host| with_port(host)).collect::<Result<Vec<_>>>()?;
        let hosts: Vec<_> = hosts.into_iter().flat_map(with_other_name).collect();
        let CompiledConfig { policy, settings, .. } =
            invocation.location.load_allowing(hosts.iter().map(|(host, _)| host.as_str()))?;
        let policy = Arc::new(policy);
        let cleared = hosts.iter().filter_map(|(host, port)| Some((plain_host(host)?, (*port)?))).collect();
        let egress = CallEgress::new(Arc::clone(&policy), cleared);
        let files = invocation.location.roots(&settings)?;
        let spec = self.launch_spec(egress)?.restricted(restricted_paths(&files, policy.as_ref())?);
        let options = SandboxOptions { warm: 0, ..SandboxOptions::default() };
        let launcher = sandboxed_processes(&invocation.location, &settings, &std::env::vars_os().collect(), options)
            .with_protected(self.client.protected.iter().cloned())
            .with_layers(invocation.location.state()?.layers_dir());
        let ended = block_on(async {
            let streams = spec.streams;
            let watched = self.watch(invocation, &launcher, &spec).await?;
            let launched = match self.judge_hooks(invocation, watched.as_ref()) {
                Ok(judging) => self.launch(&launcher, spec).await.map(|child| (Arc::new(child), judging)),
                Err(error) => Err(error),
            };
            let (child, judging) = match launched {
                Ok(launched) => launched,
                Err(error) => {
                    watched.into_iter().for_each(WatchedCommand::abandon);
                    return Err(error);
                }
            };
            let forwarded = streams::forward_streams(&child, streams).await;
            if forwarded.is_err() {
                // What it did until now is settled all the same.
                child.kill();
            }
            let code = child.wait().await?.shell_code();
            judging.into_iter().for_each(JudgingTask::end);
            let denied = denied(&child, code, &policy, &files);
            let (enforcement, staged) = (child.enforcement().clone(), child.take_staged());
            let settled = watched.map(|watched| block_in_place(|| watched.end(code))).transpose()?;
            forwarded?;
            anyhow::Ok(SandboxReport { code, enforcement, denied, staged, settled })
        })??;
        ended.tell(&self, invocation)
    }

    /// The command, with streams like our own.
    fn launch_spec(&self, egress: CallEgress) -> Result<LaunchSpec> {
        let Some((program, arguments)) = self.command.split_first() else { bail!("There is no command to run.") };
        let spec = arguments.iter().fold(LaunchSpec::program(program), LaunchSpec::argument);
        // Also without hosts: then it is told what the command tried to reach, where that can be known.
        let network = if self.network { NetworkAccess::Shared } else { NetworkAccess::Listed(Arc::new(egress)) };
        let apply_mode = if self.rehearse || self.commit { ApplyMode::OnCommit } else { ApplyMode::InPlace };
        let mut spec = streams::inherit_streams(spec.network(network).apply_mode(apply_mode));
        spec.writable.clone_from(&self.client.writable);
        spec.read_only.clone_from(&self.client.readable);
        spec.replaced.clone_from(&self.client.replaced);
        spec.environment.extend(self.client.environment.clone());
        Ok(spec)
    }

    /// Watches what the command leaves, if it works in place; none if that is to stay, whatever it is.
    async fn watch(
        &self,
        invocation: &Invocation,
        launcher: &SandboxedProcesses,
        spec: &LaunchSpec,
    ) -> Result<Option<WatchedCommand>> {
        if self.no_quarantine || spec.apply_mode != ApplyMode::InPlace {
            return Ok(None);
        }
        let is_confined = launcher.protects().await?;
        block_in_place(|| WatchedCommand::begin(invocation, spec, is_confined)).map(Some)
    }

    /// Judges the client's hooks, and records them where its changes are recorded.
    fn judge_hooks(&self, invocation: &Invocation, watched: Option<&WatchedCommand>) -> Result<Option<JudgingTask>> {
        let (Some(judge), Some(watched)) = (&self.client.judge, watched) else { return Ok(None) };
        judge.start(invocation, watched.run()).map(Some)
    }

    async fn launch(&self, launcher: &SandboxedProcesses, mut spec: LaunchSpec) -> Result<Child> {
        spec.apply_mode = spec.decide_apply_mode(true)?;
        let sandbox = launcher.sandbox().await.map_err(refusal)?;
        if !self.connect.is_empty() {
            // Whoever names hosts is told at once where no list of them can be held.
            sandbox.require_host_list(&spec.network)?;
        }
        if !self.client.protected.is_empty() && !launcher.protects().await? {
            bail!(
                "This machine's sandbox can't keep the client from changing what its later sessions run, such as its settings. \
                 `toolgate doctor` says what namespaces need."
            );
        }
        let is_staged = spec.apply_mode != ApplyMode::InPlace;
        launcher.launch(spec).await.map_err(|error| match is_staged {
            // Told as of a call, with its kind and its exit code.
            true => ToolError::from(error).into(),
            false => refusal(error),
        })
    }
}

/// A refusal has words, a kind and an exit code of its own.
fn refusal(error: SandboxError) -> anyhow::Error {
    match error {
        SandboxError::Refused(refused) => refused.into(),
        other => other.into(),
    }
}

/// A host with the port behind it, if there is one.
fn with_port(text: &str) -> Result<(String, Option<u16>)> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            match port.parse() {
                Ok(port) if port > 0 => Ok((host.to_owned(), Some(port))),
                _ => bail!("The port of `{text}` must be a number from 1 to 65535."),
            }
        }
        _ => Ok((text.to_owned(), None)),
    }
}

/// A host by the names that clients may use for it: this machine's loopback has two.
fn with_other_name((host, port): (String, Option<u16>)) -> Vec<(String, Option<u16>)> {
    const LOOPBACK: [&str; 2] = ["127.0.0.1", "localhost"];
    match LOOPBACK.contains(&host.as_str()) {
        true => LOOPBACK.iter().map(|name| ((*name).to_owned(), port)).collect(),
        false => vec![(host, port)],
    }
}

/// What policy takes from every command.
pub(super) fn restricted_paths(files: &dyn Files, policy: &Policy) -> Result<RestrictedPaths> {
    Ok(HiddenPathScanner::default().restricted_paths(files, policy)?)
}

/// What was kept from the command, a sentence each; if it failed, also what else may be why.
fn denied(child: &Child, code: i32, policy: &Policy, files: &dyn Files) -> Vec<String> {
    // What the command wrote went to the person, so its errors tell nothing here.
    let (refused, opened) = (child.denials(""), child.opened());
    let of_hidden = |place: &WorkspacePath| policy.denial(place, &files.shown(place));
    let told = reported_denials(refused, &opened, usize::MAX, code != 0, of_hidden);
    told.into_iter().map(|denial| denial.reason).collect()
}
