//! Commands for tools: each runs in a sandbox of its own, made by one zygote, under the workspace's profile.

mod started;

use std::path::PathBuf;

use tokio::sync::OnceCell;
use toolgate_contract::{
    BoxFuture, ErrorCode, Guarantee, Holding, Landing, Order, Place, Process, Processes, Streams, ToolError,
};

use self::started::Started;
use crate::apart::{self, Layers};
use crate::process::{self, Command, Options, Profile, Running, Sandbox, Tier};

/// Without these a command could see or change what policy took from it, or outlive its call.
const NEEDED: &[Guarantee] =
    &[Guarantee::Filesystem, Guarantee::Network, Guarantee::ProcessTree, Guarantee::Syscalls, Guarantee::Environment];

/// Runs commands confined to a profile. The sandbox is made when the first command comes.
pub struct Confined {
    profile: Profile,
    /// The roots' folders; the workspace comes first.
    roots: Vec<PathBuf>,
    options: Options,
    /// Where commands' changes are kept apart; none where they go straight to the workspace.
    layers: Option<PathBuf>,
    sandbox: OnceCell<Sandbox>,
}

impl Confined {
    /// Commands in these roots, confined to this profile.
    pub fn new(profile: Profile, roots: Vec<PathBuf>, options: Options) -> Self {
        Self { profile, roots, options, layers: None, sandbox: OnceCell::new() }
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
        let enforcement = sandbox.prepare(&self.profile).await?;
        let weak: Vec<&str> = enforcement
            .guarantees
            .iter()
            .filter(|report| NEEDED.contains(&report.guarantee) && report.holding != Holding::Held)
            .map(|report| report.reason.as_str())
            .collect();
        if weak.is_empty() {
            self.layers.as_deref().into_iter().for_each(apart::sweep);
            return Ok(sandbox);
        }
        let message =
            format!("Commands can't be confined well enough here ({}): {}.", enforcement.tier.name(), weak.join("; "));
        Err(ToolError::new(ErrorCode::SandboxUnavailable, message))
    }

    async fn run(&self, order: Order) -> Result<Box<dyn Process>, ToolError> {
        let sandbox = self.sandbox.get_or_try_init(|| self.make()).await?;
        let mut profile = self.profile.clone();
        profile.masked.extend(order.hidden.iter().filter_map(|place| self.path(place)));
        profile.protected.extend(order.protected.iter().filter_map(|place| self.path(place)));
        let mut command = Command::new("/bin/bash").argument("-c").argument(order.command);
        command.working_directory = self.path(&order.workdir);
        command.streams = match order.streams {
            Streams::Output => process::Streams::Output,
            Streams::Input => process::Streams::Interactive,
            Streams::Terminal(size) => {
                // Without one, programs are told that there is nobody to show colours to.
                command.environment.insert("TERM".into(), "xterm-256color".into());
                process::Streams::Terminal(started::size(size))
            }
        };
        let (running, layers) = self.launch(sandbox, &profile, &command, order.landing).await?;
        Ok(Box::new(Started::new(running, layers)?))
    }

    /// Runs the command on layers where that is wanted and possible.
    async fn launch(
        &self,
        sandbox: &Sandbox,
        profile: &Profile,
        command: &Command,
        landing: Landing,
    ) -> Result<(Running, Option<Layers>), ToolError> {
        let parent = self.layers.as_deref().filter(|_| sandbox.tier() == Tier::Namespaces);
        match (landing, parent) {
            (Landing::AtOnce, _) | (Landing::AtItsEnd, None) => {}
            (Landing::AtItsEnd, Some(parent)) => {
                match Layers::run(sandbox, profile, command, parent, &self.roots).await {
                    // This kernel or this file system has no such layers.
                    Err(error) if error.code == ErrorCode::SandboxUnavailable => {}
                    other => return other.map(|(running, layers)| (running, Some(layers))),
                }
            }
            (Landing::WhenCommitted, parent) => {
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

impl Processes for Confined {
    fn start(&self, order: Order) -> BoxFuture<'_, Result<Box<dyn Process>, ToolError>> {
        Box::pin(self.run(order))
    }
}
