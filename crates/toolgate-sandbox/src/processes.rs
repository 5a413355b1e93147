//! Commands for tools: each runs in a sandbox of its own, made by one zygote, under the workspace's profile.

use std::path::{Path, PathBuf};

use tokio::io::AsyncReadExt;
use tokio::sync::OnceCell;
use toolgate_contract::{
    BoxFuture, Denial, Enforced, ErrorCode, Guarantee, Holding, Order, Output, Place, Process, Processes, ToolError,
};

use crate::denied_files::denied_files;
use crate::process::{Command, Listed, Network, Options, Profile, Running, Sandbox, Tier};

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// Without these a command could see or change what policy took from it, or outlive its call.
const NEEDED: &[Guarantee] =
    &[Guarantee::Filesystem, Guarantee::Network, Guarantee::ProcessTree, Guarantee::Syscalls, Guarantee::Environment];

/// Runs commands confined to a profile. The sandbox is made when the first command comes.
pub struct Confined {
    profile: Profile,
    /// The roots' folders; the workspace comes first.
    roots: Vec<PathBuf>,
    options: Options,
    sandbox: OnceCell<Sandbox>,
}

impl Confined {
    /// Commands in these roots, confined to this profile.
    pub fn new(profile: Profile, roots: Vec<PathBuf>, options: Options) -> Self {
        Self { profile, roots, options, sandbox: OnceCell::new() }
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
        let workdir = self.path(&order.workdir).unwrap_or_else(|| profile.working_directory.clone());
        command.working_directory = Some(workdir.clone());
        if order.unsandboxed {
            let running = sandbox.spawn_open(&profile, &command).await?;
            return Ok(Box::new(Started { running, profile, workdir }));
        }
        for path in &order.writable {
            profile.writable.push(real(path)?);
        }
        // Without a host to reach, or without the means to hold it to those, its network stays an empty one.
        let border = order.border.filter(|border| border.is_open() && sandbox.tier() == Tier::Namespaces);
        if let Some(border) = border {
            profile.network = Network::Listed(Listed(border));
        }
        let running = sandbox.spawn(&profile, &command).await?;
        Ok(Box::new(Started { running, profile, workdir }))
    }
}

impl Processes for Confined {
    fn start(&self, order: Order) -> BoxFuture<'_, Result<Box<dyn Process>, ToolError>> {
        Box::pin(self.run(order))
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

struct Started {
    running: Running,
    profile: Profile,
    workdir: PathBuf,
}

impl Started {
    async fn next(&mut self) -> Option<Output> {
        let (mut out, mut err) = (vec![0; PIECE], vec![0; PIECE]);
        loop {
            let Running { stdout, stderr, .. } = &mut self.running;
            // A stream that has ended is let go; when both have, it is over.
            let (from_out, read) = match (stdout.as_mut(), stderr.as_mut()) {
                (Some(stdout), Some(stderr)) => tokio::select! {
                    read = stdout.read(&mut out) => (true, read),
                    read = stderr.read(&mut err) => (false, read),
                },
                (Some(stdout), None) => (true, stdout.read(&mut out).await),
                (None, Some(stderr)) => (false, stderr.read(&mut err).await),
                (None, None) => return None,
            };
            match (read.unwrap_or(0), from_out) {
                (0, true) => self.running.stdout = None,
                (0, false) => self.running.stderr = None,
                (count, true) => return Some(Output::Out(out[..count].to_vec())),
                (count, false) => return Some(Output::Err(err[..count].to_vec())),
            }
        }
    }
}

impl Process for Started {
    fn output(&mut self) -> BoxFuture<'_, Option<Output>> {
        Box::pin(self.next())
    }

    fn wait(&mut self) -> BoxFuture<'_, Result<i32, ToolError>> {
        Box::pin(async { Ok(self.running.wait().await?.shell_code()) })
    }

    fn enforced(&self) -> Enforced {
        self.running.enforcement().enforced()
    }

    fn denials(&self, errors: &str) -> Vec<Denial> {
        if self.running.enforcement().tier == Tier::Open {
            return Vec::new();
        }
        let mut denials = self.running.denials();
        denials.extend(denied_files(errors, &self.profile, &self.workdir));
        denials
    }
}
