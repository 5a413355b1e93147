//! `toolgate sandbox`: runs a command the way an agent's command would run, from the shell.

pub(super) mod changes;
mod ended;
mod streams;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use toolgate_contract::{Access, Lookout, Place, Veil};
use toolgate_policy::{Compiled, Policy, Settings, plain_host};
use toolgate_runtime::PolicyBorder;
use toolgate_sandbox::process::{Command, Listed, Network, Options, Profile, Running, Sandbox as Maker, Tier};
use toolgate_sandbox::{Layers, enough, scratch};

use self::ended::Ended;
use super::{Setting, block_on};
use crate::exit::Exit;
use crate::wiring::{folders, profile, roots, weakest};

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
pub(crate) struct Sandbox {
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

impl Sandbox {
    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        let hosts = self.connect.iter().map(|host| with_port(host)).collect::<Result<Vec<_>>>()?;
        let Compiled { policy, settings, .. } =
            setting.place.load_allowing(hosts.iter().map(|(host, _)| host.as_str()))?;
        let policy = Arc::new(policy);
        let cleared = hosts.iter().filter_map(|(host, port)| Some((plain_host(host)?, (*port)?))).collect();
        let Some((program, arguments)) = self.command.split_first() else { bail!("There is no command to run.") };
        let mut command = arguments.iter().fold(Command::new(program), |command, argument| command.argument(argument));
        streams::like_ours(&mut command);
        let folders = folders(&setting.place, &settings.roots);
        let ended = block_on(async {
            let (maker, profile) = self.confine(setting, &policy, &settings, cleared).await?;
            let layers = setting.place.state()?.layers_dir();
            let _scratch = scratch(maker.tier(), Some(&layers), &mut command)?;
            let (mut running, apart) = match self.rehearse || self.commit {
                true => Layers::run(&maker, &profile, &command, &layers, &folders)
                    .await
                    .map(|(running, apart)| (running, Some(apart)))?,
                false => (maker.spawn(&profile, &command).await?, None),
            };
            streams::pass_on(&mut running).await?;
            let code = running.wait().await?.shell_code();
            let denied = denied(&running, code, &policy, &folders);
            anyhow::Ok(Ended { code, enforcement: running.enforcement().clone(), denied, apart })
        })??;
        ended.tell(&self, setting)
    }

    /// What makes the sandbox, if it is good enough, and what the command is confined to.
    async fn confine(
        &self,
        setting: &Setting,
        policy: &Arc<Policy>,
        settings: &Settings,
        cleared: Vec<(String, u16)>,
    ) -> Result<(Maker, Profile)> {
        let mut profile = profile(&setting.place, &settings.roots);
        let hidden = hide(setting, policy, settings, &mut profile)?;
        let maker = Maker::new(Options { warm: 0, ..Options::default() }).await?;
        let border = PolicyBorder::new(Arc::clone(policy), cleared);
        profile.network = match self.network {
            true => Network::Shared,
            // Without hosts it is told what the command tried to reach, where that can be known.
            false if !self.connect.is_empty() || maker.tier() == Tier::Namespaces => {
                Network::Listed(Listed(Arc::new(border)))
            }
            false => Network::Off,
        };
        enough::check(&maker.prepare(&profile).await?, weakest(settings))?;
        enough::can_hide(maker.tier(), &hidden)?;
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
    setting: &Setting,
    policy: &Policy,
    settings: &Settings,
    profile: &mut Profile,
) -> Result<Vec<Place>> {
    struct ByPolicy<'a>(&'a Policy);
    impl Veil for ByPolicy<'_> {
        fn hides(&self, access: Access, place: &Place) -> bool {
            self.0.hides(access, place)
        }
    }
    let files = roots(&setting.place, settings)?;
    let folders = folders(&setting.place, &settings.roots);
    let path = |place: &Place| folders[place.root].join(&place.path);
    let found = Lookout::default().out_of_bounds(&files, &ByPolicy(policy))?;
    profile.secret.extend(found.hidden.iter().map(path));
    profile.protected.extend(found.protected.iter().map(path));
    Ok(found.hidden)
}

/// What was kept from the command, a sentence each; if it failed, also what else may be why.
fn denied(running: &Running, code: i32, policy: &Policy, folders: &[PathBuf]) -> Vec<String> {
    let opened = running.opened();
    let decoy = |path: &PathBuf| {
        let beneath = |(root, folder): (usize, &PathBuf)| Some((root, path.strip_prefix(folder).ok()?));
        let (root, inside) = folders.iter().enumerate().find_map(beneath)?;
        let shown = if root == 0 { inside.display() } else { path.display() };
        let place = Place { root, path: inside.display().to_string() };
        Some(policy.denial_of(&place, &shown.to_string()))
    };
    let unused = if code == 0 { Vec::new() } else { running.unused_names() };
    let all = running.denials().into_iter().chain(unused).chain(opened.iter().filter_map(decoy));
    all.map(|denial| denial.reason).collect()
}
