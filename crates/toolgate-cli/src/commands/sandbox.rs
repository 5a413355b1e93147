//! `toolgate sandbox`: runs a command the way an agent's command would run, from the shell.

pub(super) mod changes;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use toolgate_contract::{Access, Lookout, Place, Veil};
use toolgate_policy::{Compiled, Policy, Settings, plain_host};
use toolgate_runtime::PolicyBorder;
use toolgate_sandbox::process::{
    Command, Enforcement, Listed, Network, Options, Profile, Running, Sandbox as Maker, Tier,
};
use toolgate_sandbox::{Layers, enough, scratch};

use self::changes::Shown;
use super::commit::Commit;
use super::{Setting, block_on};
use crate::exit::Exit;
use crate::terminal::{DIM, YELLOW, paint};
use crate::wiring::{folders, profile, roots, weakest};

/// Run a command in the sandbox that agents' commands run in. Nothing is judged or recorded: it is you who asks.
///
/// Examples:
///   toolgate sandbox -- cargo test
///   toolgate sandbox -- sh -c 'curl example.com; ls ~'
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
        let hosts: Vec<_> = self.connect.iter().map(|host| with_port(host)).collect();
        let Compiled { policy, settings, .. } =
            setting.place.load_allowing(hosts.iter().map(|(host, _)| host.as_str()))?;
        let policy = Arc::new(policy);
        let cleared = hosts.iter().filter_map(|(host, port)| Some((plain_host(host)?, (*port)?))).collect();
        let Some((program, arguments)) = self.command.split_first() else { bail!("There is no command to run.") };
        let mut command = arguments.iter().fold(Command::new(program), |command, argument| command.argument(argument));
        let folders = folders(&setting.place, &settings.roots);
        let files = roots(&setting.place, &settings)?;
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
            pass_on(&mut running).await?;
            let code = running.wait().await?.shell_code();
            tell_denials(&running, code, &policy, &folders);
            let shown = if setting.json { Shown::Json } else { Shown::First };
            let kept = apart.map(|mut apart| changes::show(&mut apart, &files, shown)).transpose()?.flatten();
            anyhow::Ok(Ended { code, enforcement: running.enforcement().clone(), kept })
        })??;
        self.tell(ended, setting)
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

    fn tell(&self, Ended { code, enforcement, kept }: Ended, setting: &Setting) -> Result<Exit> {
        match enough::gaps(&enforcement) {
            _ if self.verbose => tell(&enforcement),
            // Somebody said that less will do; still nobody should take it for more.
            Some(gaps) => anstream::eprintln!("{}", paint(YELLOW, gaps)),
            None => {}
        }
        match kept {
            Some(rehearsal) if self.commit && code == 0 => return Commit::of(rehearsal).run(setting),
            Some(_) if setting.json => {}
            Some(rehearsal) => {
                let how = format!("To put exactly this in place within a day: toolgate commit {rehearsal}");
                anstream::eprintln!("{}", paint(DIM, how));
            }
            None => {}
        }
        Ok(Exit::Code(u8::try_from(code).unwrap_or(1)))
    }
}

/// How a command ended.
struct Ended {
    code: i32,
    enforcement: Enforcement,
    /// What it changed, where that was kept apart.
    kept: Option<String>,
}

/// A host with the port behind it, if there is one.
fn with_port(text: &str) -> (String, Option<u16>) {
    match text.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) if !host.contains(':') => (host.to_owned(), Some(port)),
        _ => (text.to_owned(), None),
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

/// Hands on what the command writes, as it comes.
async fn pass_on(running: &mut Running) -> Result<()> {
    let (Some(stdout), Some(stderr)) = (running.stdout.take(), running.stderr.take()) else {
        bail!("The command has no output.")
    };
    let out = copy(stdout, std::io::stdout());
    let err = copy(stderr, std::io::stderr());
    tokio::try_join!(out, err).context("the command's output can't be passed on")?;
    Ok(())
}

async fn copy(mut from: impl tokio::io::AsyncRead + Unpin, mut to: impl Write) -> std::io::Result<()> {
    use tokio::io::AsyncReadExt;
    let mut piece = vec![0; 64 * 1024];
    loop {
        match from.read(&mut piece).await? {
            0 => return Ok(()),
            count => {
                to.write_all(&piece[..count])?;
                to.flush()?;
            }
        }
    }
}

/// What was kept from the command, a line each; if it failed, also what else may be why.
fn tell_denials(running: &Running, code: i32, policy: &Policy, folders: &[PathBuf]) {
    let opened = running.opened();
    let decoy = |path: &PathBuf| {
        let beneath = |(root, folder): (usize, &PathBuf)| Some((root, path.strip_prefix(folder).ok()?));
        let (root, inside) = folders.iter().enumerate().find_map(beneath)?;
        let shown = if root == 0 { inside.display() } else { path.display() };
        let place = Place { root, path: inside.display().to_string() };
        Some(policy.denial_of(&place, &shown.to_string()))
    };
    let unused = if code == 0 { Vec::new() } else { running.unused_names() };
    for denial in running.denials().into_iter().chain(unused).chain(opened.iter().filter_map(decoy)) {
        anstream::eprintln!("{}", paint(DIM, &denial.reason));
    }
}

fn tell(enforcement: &Enforcement) {
    anstream::eprintln!("{}", paint(DIM, format!("confined by {}", enforcement.tier.name())));
    for report in &enforcement.guarantees {
        let line = format!("{:?}: {:?}, {}", report.guarantee, report.holding, report.reason);
        anstream::eprintln!("  {}", paint(DIM, line));
    }
}
