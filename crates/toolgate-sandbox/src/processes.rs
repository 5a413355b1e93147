//! Commands for tools: each runs in a sandbox of its own, made by one zygote, under the workspace's profile.

pub mod enough;
mod started;

use std::path::{Path, PathBuf};

use tokio::sync::OnceCell;
use toolgate_contract::{BoxFuture, ErrorCode, Landing, Order, Place, Process, Processes, Program, Streams, ToolError};

use self::started::{Beside, Held, Started};
use crate::apart::{self, Folder, Layers};
use crate::process::{self, Command, Listed, Network, Options, Profile, Running, Sandbox, Tier};

/// What the workspace is called in a folder of a command's own.
const WORKSPACE_LINK: &str = "workspace";

/// Runs commands confined to a profile. The sandbox is made when the first command comes.
pub struct Confined {
    profile: Profile,
    /// The roots' folders; the workspace comes first.
    roots: Vec<PathBuf>,
    options: Options,
    /// Where commands' changes are kept apart; none where they go straight to the workspace.
    layers: Option<PathBuf>,
    /// What has to confine them at the least.
    weakest: Tier,
    sandbox: OnceCell<Sandbox>,
    /// For what was granted to run with no walls. It needs none that could be built here.
    open: OnceCell<Sandbox>,
}

impl Confined {
    /// Commands in these roots, confined to this profile.
    pub fn new(profile: Profile, roots: Vec<PathBuf>, options: Options) -> Self {
        let (sandbox, open) = (OnceCell::new(), OnceCell::new());
        Self { profile, roots, options, layers: None, weakest: Tier::Bubblewrap, sandbox, open }
    }

    /// The same, content with no less than this. Landlock alone is less than what policy counts on, so somebody has to say that
    /// it is enough.
    #[must_use]
    pub fn at_least(mut self, weakest: Tier) -> Self {
        self.weakest = weakest;
        self
    }

    /// The same, with a folder in which commands' changes are kept apart.
    #[must_use]
    pub fn with_layers(mut self, folder: PathBuf) -> Self {
        self.layers = Some(folder);
        self
    }

    fn path(&self, place: &Place) -> Option<PathBuf> {
        self.roots.get(place.root).map(|root| root.join(&place.path))
    }

    /// Makes the sandbox, and sees that it holds: what a command touches was judged on the ground that it does.
    async fn make(&self) -> Result<Sandbox, ToolError> {
        let sandbox = Sandbox::new(self.options.clone()).await?;
        enough::check(&sandbox.prepare(&self.profile).await?, self.weakest)?;
        self.layers.as_deref().into_iter().for_each(apart::sweep);
        Ok(sandbox)
    }

    async fn sandbox(&self) -> Result<&Sandbox, ToolError> {
        self.sandbox.get_or_try_init(|| self.make()).await
    }

    async fn open(&self) -> Result<&Sandbox, ToolError> {
        let options = Options { tier: Some(Tier::Open), warm: 0, ..self.options.clone() };
        Ok(self.open.get_or_try_init(|| Sandbox::new(options)).await?)
    }

    async fn run(&self, order: Order) -> Result<Box<dyn Process>, ToolError> {
        let sandbox = if order.unsandboxed { self.open().await? } else { self.sandbox().await? };
        enough::can_hide(sandbox.tier(), &order.hidden)?;
        let mut profile = self.profile.clone();
        profile.secret.extend(order.hidden.iter().filter_map(|place| self.path(place)));
        profile.protected.extend(order.protected.iter().filter_map(|place| self.path(place)));
        let landing = landing(order.landing, &order.writable)?;
        if landing != Landing::AtOnce {
            // Git writes there for a branch or a remote. What it wouldn't write by itself isn't put in place.
            profile.protected.retain(|path| !path.ends_with(".git/config"));
        }
        let mut command = match &order.program {
            None => Command::new("/bin/bash").argument("-c").argument(order.command),
            Some(program) => self.started_directly(program, &mut profile)?,
        };
        let workdir = match order.program {
            None => self.path(&order.workdir).unwrap_or_else(|| profile.working_directory.clone()),
            Some(program) => program.workdir,
        };
        command.working_directory = Some(workdir.clone());
        command.streams = match order.streams {
            Streams::Output => process::Streams::Output,
            Streams::Input => process::Streams::Interactive,
            Streams::Terminal(size) => {
                // Without one, programs are told that there is nobody to show colours to.
                command.environment.insert("TERM".into(), "xterm-256color".into());
                process::Streams::Terminal(started::size(size))
            }
        };
        if order.unsandboxed {
            return Ok(Box::new(Started::new(sandbox.spawn_open(&profile, &command).await?, None, Beside::default())?));
        }
        for path in &order.writable {
            profile.writable.push(real(path)?);
        }
        // Also where no host may be reached: then whom it tried to reach is known. Without the means for that, its network is
        // an empty one.
        let border = order.border.filter(|_| sandbox.tier() == Tier::Namespaces);
        if let Some(border) = border {
            profile.network = Network::Listed(Listed(border));
        }
        let scratch = scratch(sandbox.tier(), self.layers.as_deref(), &mut command)?;
        let (running, layers) = self.launch(sandbox, &profile, &command, landing).await?;
        let held = Held { profile, workdir, hidden: order.hidden, roots: self.roots.clone() };
        Ok(Box::new(Started::new(running, Some(held), Beside { layers, scratch })?))
    }

    /// A program that no shell starts: it sees the folder that it belongs to, and the one that it starts in is its own. From
    /// there the workspace is where a link says, so that it can be named without knowing where it is.
    fn started_directly(&self, program: &Program, profile: &mut Profile) -> Result<Command, ToolError> {
        let link = program.workdir.join(WORKSPACE_LINK);
        match std::os::unix::fs::symlink(&profile.working_directory, &link) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(ToolError::io(&format!("`{}` can't be made", link.display()), &error));
            }
            _ => {}
        }
        profile.shown.push(program.home.clone());
        profile.own.push(program.workdir.clone());
        let command = Command::new(&program.path);
        Ok(program.arguments.iter().fold(command, |command, argument| command.argument(argument)))
    }

    /// Runs the command on layers where that is wanted.
    async fn launch(
        &self,
        sandbox: &Sandbox,
        profile: &Profile,
        command: &Command,
        landing: Landing,
    ) -> Result<(Running, Option<Layers>), ToolError> {
        let parent = self.layers.as_deref().filter(|_| sandbox.tier() == Tier::Namespaces);
        match (landing, parent) {
            (Landing::AtOnce, _) => {}
            (Landing::AtItsEnd | Landing::WhenCommitted, parent) => {
                let parent = parent.ok_or_else(|| {
                    ToolError::new(ErrorCode::SandboxUnavailable, "Nothing here can keep a command's changes apart.")
                })?;
                let (running, layers) = Layers::run(sandbox, profile, command, parent, &self.roots).await?;
                return Ok((running, Some(layers)));
            }
        }
        Ok((sandbox.spawn(profile, command).await?, None))
    }
}

/// By Landlock alone the machine's folder for temporary files is out of reach. A command gets one beside the layers, in `parent`,
/// which goes when this is dropped.
pub fn scratch(tier: Tier, parent: Option<&Path>, command: &mut Command) -> Result<Option<Folder>, ToolError> {
    let Some(parent) = parent.filter(|_| tier == Tier::Landlock) else { return Ok(None) };
    let folder = Folder::make(parent)?;
    command.environment.insert("TMPDIR".into(), folder.room()?.into());
    Ok(Some(folder))
}

/// What lies outside the workspace can't be taken back: a command that was granted a place there makes its changes at once,
/// and so can't be rehearsed.
fn landing(wanted: Landing, outside: &[String]) -> Result<Landing, ToolError> {
    match (wanted, outside) {
        (wanted, []) => Ok(wanted),
        (Landing::AtOnce | Landing::AtItsEnd, _) => Ok(Landing::AtOnce),
        (Landing::WhenCommitted, _) => {
            let message = "A command that may change places outside the workspace can't be rehearsed.";
            Err(ToolError::new(ErrorCode::SandboxDenied, message).with_hint("Rehearse it without those places."))
        }
    }
}

/// A place outside that was granted, if it is what it says: behind a link there is another place, which nobody granted.
fn real(path: &str) -> Result<PathBuf, ToolError> {
    match std::fs::canonicalize(path) {
        Ok(real) if real == Path::new(path) => Ok(real),
        Ok(real) => {
            let message = format!("`{path}` leads to `{}`; ask for that place instead.", real.display());
            Err(ToolError::new(ErrorCode::SandboxDenied, message))
        }
        Err(error) => Err(ToolError::io(&format!("`{path}` can't be granted"), &error)),
    }
}

impl Processes for Confined {
    fn start(&self, order: Order) -> BoxFuture<'_, Result<Box<dyn Process>, ToolError>> {
        Box::pin(self.run(order))
    }

    fn protects(&self) -> BoxFuture<'_, Result<bool, ToolError>> {
        Box::pin(async { Ok(self.sandbox().await?.tier() != Tier::Landlock) })
    }
}
