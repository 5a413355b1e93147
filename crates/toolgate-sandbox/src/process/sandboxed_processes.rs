//! Commands for tools: each runs in a sandbox of its own, made by one zygote, under the workspace's profile.

mod sandboxed_process;

use std::path::{Path, PathBuf};

use tokio::sync::OnceCell;
use toolgate_contract::{
    ApplyMode, BoxFuture, ErrorCode, LaunchSpec, Process, ProcessLauncher, Program, Streams, ToolError, WorkspacePath,
};

use self::sandboxed_process::{CommandConfinement, CommandResources, SandboxedProcess};
use crate::files::overlay_changes;
use crate::files::overlay_changes::{LayerDirectory, OverlayChanges};
use crate::process::{self, Child, CommandSpec, ListedHosts, NetworkAccess, Profile, Sandbox, SandboxOptions, Tier};

/// What the workspace is called in a directory of a command's own.
const WORKSPACE_LINK: &str = "workspace";

/// Runs commands confined to a profile. The sandbox is made when the first command comes.
pub struct SandboxedProcesses {
    profile: Profile,
    /// The roots' directories; the workspace comes first.
    roots: Vec<PathBuf>,
    options: SandboxOptions,
    /// Where commands' changes are kept apart; none where they go straight to the workspace.
    layers: Option<PathBuf>,
    /// What has to confine them at the least.
    weakest: Tier,
    sandbox: OnceCell<Sandbox>,
    /// For what was granted to run with no walls. It needs none that could be built here.
    open: OnceCell<Sandbox>,
}

impl SandboxedProcesses {
    /// Commands in these roots, confined to this profile.
    pub fn new(profile: Profile, roots: Vec<PathBuf>, options: SandboxOptions) -> Self {
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

    /// The same, with a directory in which commands' changes are kept apart.
    #[must_use]
    pub fn with_layers(mut self, directory: PathBuf) -> Self {
        self.layers = Some(directory);
        self
    }

    fn path(&self, place: &WorkspacePath) -> Option<PathBuf> {
        self.roots.get(place.root).map(|root| root.join(&place.path))
    }

    /// Makes the sandbox, and sees that it holds: what a command touches was judged on the ground that it does.
    async fn make(&self) -> Result<Sandbox, ToolError> {
        let sandbox = Sandbox::new(self.options.clone()).await?;
        crate::process::requirements::check(&sandbox.prepare(&self.profile).await?, self.weakest)?;
        self.layers.as_deref().into_iter().for_each(overlay_changes::sweep);
        Ok(sandbox)
    }

    async fn sandbox(&self) -> Result<&Sandbox, ToolError> {
        self.sandbox.get_or_try_init(|| self.make()).await
    }

    async fn open(&self) -> Result<&Sandbox, ToolError> {
        let options = SandboxOptions { tier: Some(Tier::Open), warm: 0, ..self.options.clone() };
        Ok(self.open.get_or_try_init(|| Sandbox::new(options)).await?)
    }

    async fn run(&self, order: LaunchSpec) -> Result<Box<dyn Process>, ToolError> {
        let sandbox = if order.unsandboxed { self.open().await? } else { self.sandbox().await? };
        crate::process::requirements::can_hide(sandbox.tier(), &order.hidden)?;
        let mut profile = self.profile.clone();
        profile.secret.extend(order.hidden.iter().filter_map(|place| self.path(place)));
        profile.protected.extend(order.protected.iter().filter_map(|place| self.path(place)));
        let apply_mode = apply_mode(order.apply_mode, &order.writable)?;
        if apply_mode != ApplyMode::AtOnce {
            // Git writes there for a branch or a remote. What it wouldn't write by itself isn't put in place.
            profile.protected.retain(|path| !path.ends_with(".git/config"));
        }
        let mut command = match &order.program {
            None => CommandSpec::new("/bin/bash").argument("-c").argument(order.command),
            Some(program) => self.direct_command(program, &mut profile)?,
        };
        let workdir = match order.program {
            None => self.path(&order.workdir).unwrap_or_else(|| profile.working_directory.clone()),
            Some(program) => program.workdir,
        };
        command.working_directory = Some(workdir.clone());
        command.streams = match order.streams {
            Streams::Output => process::StandardStreams::Output,
            Streams::Input => process::StandardStreams::Interactive,
            Streams::Terminal(size) => {
                // Without one, programs are told that there is nobody to show colours to.
                command.environment.insert("TERM".into(), "xterm-256color".into());
                process::StandardStreams::Terminal(sandboxed_process::size(size))
            }
        };
        if order.unsandboxed {
            return Ok(Box::new(SandboxedProcess::new(
                sandbox.spawn_unconfined(&profile, &command).await?,
                None,
                CommandResources::default(),
            )?));
        }
        for path in &order.writable {
            profile.writable.push(real(path)?);
        }
        // Also where no host may be reached: then whom it tried to reach is known. Without the means for that, its network is
        // an empty one.
        let egress = order.egress.filter(|_| sandbox.tier() == Tier::Namespaces);
        if let Some(egress) = egress {
            profile.network = NetworkAccess::Listed(ListedHosts(egress));
        }
        let scratch = scratch(sandbox.tier(), self.layers.as_deref(), &mut command)?;
        let (running, layers) = self.launch(sandbox, &profile, &command, apply_mode).await?;
        let held = CommandConfinement { profile, workdir, hidden: order.hidden, roots: self.roots.clone() };
        Ok(Box::new(SandboxedProcess::new(running, Some(held), CommandResources { layers, scratch })?))
    }

    /// A program that no shell starts: it sees the directory that it belongs to, and the one that it starts in is its own. From
    /// there the workspace is where a link says, so that it can be named without knowing where it is.
    fn direct_command(&self, program: &Program, profile: &mut Profile) -> Result<CommandSpec, ToolError> {
        let link = program.workdir.join(WORKSPACE_LINK);
        match std::os::unix::fs::symlink(&profile.working_directory, &link) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(ToolError::io(&format!("`{}` can't be made", link.display()), &error));
            }
            _ => {}
        }
        profile.shown.push(program.home.clone());
        profile.own.push(program.workdir.clone());
        let command = CommandSpec::new(&program.path);
        Ok(program.arguments.iter().fold(command, |command, argument| command.argument(argument)))
    }

    /// Runs the command on layers where that is wanted.
    async fn launch(
        &self,
        sandbox: &Sandbox,
        profile: &Profile,
        command: &CommandSpec,
        apply_mode: ApplyMode,
    ) -> Result<(Child, Option<OverlayChanges>), ToolError> {
        let parent = self.layers.as_deref().filter(|_| sandbox.tier() == Tier::Namespaces);
        match (apply_mode, parent) {
            (ApplyMode::AtOnce, _) => {}
            (ApplyMode::AtItsEnd | ApplyMode::WhenCommitted, parent) => {
                let parent = parent.ok_or_else(|| {
                    ToolError::new(ErrorCode::SandboxUnavailable, "Nothing here can keep a command's changes apart.")
                })?;
                let (running, layers) = OverlayChanges::run(sandbox, profile, command, parent, &self.roots).await?;
                return Ok((running, Some(layers)));
            }
        }
        Ok((sandbox.spawn(profile, command).await?, None))
    }
}

/// By Landlock alone the machine's directory for temporary files is out of reach. A command gets one beside the layers, in `parent`,
/// which goes when this is dropped.
pub fn scratch(
    tier: Tier,
    parent: Option<&Path>,
    command: &mut CommandSpec,
) -> Result<Option<LayerDirectory>, ToolError> {
    let Some(parent) = parent.filter(|_| tier == Tier::Landlock) else { return Ok(None) };
    let directory = LayerDirectory::make(parent)?;
    command.environment.insert("TMPDIR".into(), directory.room()?.into());
    Ok(Some(directory))
}

/// What lies outside the workspace can't be taken back: a command that was granted a place there makes its changes at once,
/// and so can't be rehearsed.
fn apply_mode(wanted: ApplyMode, outside: &[String]) -> Result<ApplyMode, ToolError> {
    match (wanted, outside) {
        (wanted, []) => Ok(wanted),
        (ApplyMode::AtOnce | ApplyMode::AtItsEnd, _) => Ok(ApplyMode::AtOnce),
        (ApplyMode::WhenCommitted, _) => {
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

impl ProcessLauncher for SandboxedProcesses {
    fn start(&self, order: LaunchSpec) -> BoxFuture<'_, Result<Box<dyn Process>, ToolError>> {
        Box::pin(self.run(order))
    }

    fn protects(&self) -> BoxFuture<'_, Result<bool, ToolError>> {
        Box::pin(async { Ok(self.sandbox().await?.tier() != Tier::Landlock) })
    }
}
