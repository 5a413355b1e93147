//! `toolgate sandbox`: runs a command the way an agent's command would run, from the shell.

pub(super) mod preview;
mod report;
mod streams;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use toolgate_config::Settings;
use toolgate_contract::{HiddenPathScanner, WorkspacePath};
use toolgate_policy::{CompiledConfig, Policy, plain_host};
use toolgate_runtime::CallEgress;
use toolgate_sandbox::process::requirements;
use toolgate_sandbox::process::{
    Child, CommandSpec, ListedHosts, NetworkAccess, Profile, Sandbox as Maker, SandboxOptions, Tier,
};
use toolgate_sandbox::{OverlayChanges, scratch};

use self::report::SandboxReport;
use super::{Invocation, block_on};
use crate::exit::Exit;
use crate::wiring::{directories, profile, roots};

/// Run a command in the sandbox that agents' commands run in. Nothing is judged or recorded: it is you who asks.
///
/// It reads what you pipe in; where you sit at a terminal, it has one too. Nothing that it leaves is kept aside, such as an
/// `.envrc` that your shell would obey; `--rehearse` and `--commit` do that. With `--json`, the last line on standard error is
/// an object that says how it ended and what held.
///
/// Examples:
///   toolgate sandbox -- cargo test
///   toolgate sandbox -- bash
///   toolgate sandbox -- sh -c 'curl example.com; ls ~'
///   git diff | toolgate sandbox -- ./review.py
///   toolgate sandbox --connect registry.npmjs.org -- npm ci
///   toolgate sandbox --connect db.example.com:5432 --connect '*.example.org' -- ./migrate
///   toolgate sandbox --rehearse -- sed -i s/a/b/ notes.md    (shows what would change, and changes nothing)
///   toolgate sandbox --commit -- sed -i s/a/b/ notes.md      (shows it, then puts it in place as one undoable change)
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SandboxArgs {
    /// Let it reach this host: a name, `*.example.com`, an address or a range; with a port beside 80 and 443 as HOST:PORT.
    #[arg(long, value_name = "HOST")]
    connect: Vec<String>,
    /// Let it reach whatever this machine can.
    #[arg(long, conflicts_with = "connect")]
    network: bool,
    /// Keep its changes apart and show them: the workspace stays as it is until `toolgate commit`.
    #[arg(long)]
    rehearse: bool,
    /// Keep its changes apart, show them, and put them in place if it succeeds.
    #[arg(long, conflicts_with = "rehearse")]
    commit: bool,
    /// Say afterwards what held.
    #[arg(long, short)]
    verbose: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl SandboxArgs {
    pub(crate) fn run(self, setting: &Invocation) -> Result<Exit> {
        let hosts = self.connect.iter().map(|host| with_port(host)).collect::<Result<Vec<_>>>()?;
        let CompiledConfig { policy, settings, .. } =
            setting.place.load_allowing(hosts.iter().map(|(host, _)| host.as_str()))?;
        let policy = Arc::new(policy);
        let cleared = hosts.iter().filter_map(|(host, port)| Some((plain_host(host)?, (*port)?))).collect();
        let Some((program, arguments)) = self.command.split_first() else { bail!("There is no command to run.") };
        let mut command =
            arguments.iter().fold(CommandSpec::new(program), |command, argument| command.argument(argument));
        streams::inherit_streams(&mut command);
        let directories = directories(&setting.place, &settings.roots);
        let ended = block_on(async {
            let (maker, profile) = self.confine(setting, &policy, &settings, cleared).await?;
            let layers = setting.place.state()?.layers_dir();
            let _scratch = scratch(maker.tier(), Some(&layers), &mut command)?;
            let (mut running, staged) = match self.rehearse || self.commit {
                true => OverlayChanges::run(&maker, &profile, &command, &layers, &directories)
                    .await
                    .map(|(running, staged)| (running, Some(staged)))?,
                false => (maker.spawn(&profile, &command).await?, None),
            };
            streams::forward_streams(&mut running).await?;
            let code = running.wait().await?.shell_code();
            let denied = denied(&running, code, &policy, &directories);
            anyhow::Ok(SandboxReport { code, enforcement: running.enforcement().clone(), denied, staged })
        })??;
        ended.tell(&self, setting)
    }

    /// What makes the sandbox, if it is good enough, and what the command is confined to.
    async fn confine(
        &self,
        setting: &Invocation,
        policy: &Arc<Policy>,
        settings: &Settings,
        cleared: Vec<(String, u16)>,
    ) -> Result<(Maker, Profile)> {
        let mut profile = profile(&setting.place, &settings.roots);
        let hidden = hide(setting, policy, settings, &mut profile)?;
        let maker = Maker::new(SandboxOptions { warm: 0, ..SandboxOptions::default() }).await?;
        let egress = CallEgress::new(Arc::clone(policy), cleared);
        profile.network = match self.network {
            true => NetworkAccess::Shared,
            // Without hosts it is told what the command tried to reach, where that can be known.
            false if !self.connect.is_empty() || maker.tier() == Tier::Namespaces => {
                NetworkAccess::Listed(ListedHosts(Arc::new(egress)))
            }
            false => NetworkAccess::Off,
        };
        requirements::check(&maker.prepare(&profile).await?, settings.weakest_sandbox)?;
        requirements::can_hide(maker.tier(), &hidden)?;
        Ok((maker, profile))
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

/// Takes from the command what policy takes from every tool, and tells what it hides.
pub(super) fn hide(
    setting: &Invocation,
    policy: &Policy,
    settings: &Settings,
    profile: &mut Profile,
) -> Result<Vec<WorkspacePath>> {
    let files = roots(&setting.place, settings)?;
    let directories = directories(&setting.place, &settings.roots);
    let path = |place: &WorkspacePath| directories[place.root].join(&place.path);
    let found = HiddenPathScanner::default().restricted_paths(&files, policy)?;
    profile.secret.extend(found.hidden.iter().map(path));
    profile.protected.extend(found.protected.iter().map(path));
    Ok(found.hidden)
}

/// What was kept from the command, a sentence each; if it failed, also what else may be why.
fn denied(running: &Child, code: i32, policy: &Policy, directories: &[PathBuf]) -> Vec<String> {
    let opened = running.opened();
    let decoy = |path: &PathBuf| {
        let beneath = |(root, directory): (usize, &PathBuf)| Some((root, path.strip_prefix(directory).ok()?));
        let (root, inside) = directories.iter().enumerate().find_map(beneath)?;
        let shown = if root == 0 { inside.display() } else { path.display() };
        let place = WorkspacePath { root, path: inside.display().to_string() };
        Some(policy.denial_of(&place, &shown.to_string()))
    };
    let unused = if code == 0 { Vec::new() } else { running.unused_names() };
    let all = running.denials().into_iter().chain(unused).chain(opened.iter().filter_map(decoy));
    all.map(|denial| denial.reason).collect()
}
