//! Commands in one workspace: each runs in a sandbox of its own, made by one zygote, under the workspace's profile. Tools
//! and `toolgate sandbox` launch theirs through the same value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::sync::OnceCell;
use toolgate_contract::{BoxFuture, ChildProcess, LaunchSpec, NetworkAccess, ProcessLauncher, ToolError};

use crate::caches::PackageCaches;
use crate::files::overlay_changes;
use crate::process::{Child, Profile, Sandbox, SandboxError, SandboxOptions, Tier, requirements};

/// Runs commands confined to a profile. The sandbox is made when the first command comes.
pub struct SandboxedProcesses {
    profile: Profile,
    /// The environment whose toolchains are shown as well.
    toolchains: BTreeMap<OsString, OsString>,
    /// The profile with those toolchains. They are looked for when the first command comes, while its sandbox is made: that takes
    /// thousands of system calls.
    complete: OnceLock<Profile>,
    /// The private caches of package managers; none if they aren't kept.
    caches: Option<Arc<PackageCaches>>,
    options: SandboxOptions,
    /// The weakest tier that is accepted.
    weakest: Tier,
    sandbox: OnceCell<Sandbox>,
    /// Runs commands that were granted to run without confinement, also where no other tier works.
    open: OnceCell<Sandbox>,
}

impl SandboxedProcesses {
    /// Commands confined to this profile.
    pub fn new(profile: Profile, options: SandboxOptions) -> Self {
        let (sandbox, open) = (OnceCell::new(), OnceCell::new());
        let (toolchains, complete) = (BTreeMap::new(), OnceLock::new());
        Self { profile, toolchains, complete, caches: None, options, weakest: Tier::Bubblewrap, sandbox, open }
    }

    /// Shows commands the toolchains that this environment leads to, as well.
    #[must_use]
    pub fn with_toolchains(mut self, environment: BTreeMap<OsString, OsString>) -> Self {
        self.toolchains = environment;
        self
    }

    /// Gives commands private caches of package managers.
    #[must_use]
    pub fn with_caches(mut self, caches: PackageCaches) -> Self {
        self.caches = Some(Arc::new(caches));
        self
    }

    /// Keeps commands from changing these paths, which are in writable ones.
    #[must_use]
    pub fn with_protected(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.profile.protected.extend(paths);
        self
    }

    /// Accepts no tier weaker than this one. Landlock alone is weaker than policy assumes, so configuration has to accept it.
    #[must_use]
    pub fn at_least(mut self, weakest: Tier) -> Self {
        self.weakest = weakest;
        self
    }

    /// Stages commands' changes in this directory.
    #[must_use]
    pub fn with_layers(mut self, directory: PathBuf) -> Self {
        self.profile.staging = Some(directory);
        self
    }

    /// Starts a command in a sandbox that is strong enough for it.
    pub async fn launch(&self, mut spec: LaunchSpec) -> Result<Child, SandboxError> {
        let sandbox = if spec.unsandboxed { self.open().await? } else { self.sandbox().await? };
        requirements::can_hide(sandbox.tier(), &spec.hidden)?;
        // Where a list of hosts can't be enforced, the command has no network.
        if sandbox.tier() != Tier::Namespaces && matches!(spec.network, NetworkAccess::Listed(_)) {
            spec.network = NetworkAccess::Off;
        }
        let is_plain = spec.unsandboxed || spec.without_caches;
        let profile = if is_plain { Cow::Borrowed(self.complete()) } else { self.profile(&spec).await };
        sandbox.launch(&profile, &spec).await
    }

    fn complete(&self) -> &Profile {
        self.complete.get_or_init(|| self.profile.clone().with_toolchains(&self.toolchains))
    }

    /// What a confined command is confined to. Where there can be no caches, it works without.
    async fn profile(&self, spec: &LaunchSpec) -> Cow<'_, Profile> {
        let Some(caches) = &self.caches else { return Cow::Borrowed(self.complete()) };
        let (caches, command) = (Arc::clone(caches), words(spec));
        // Mirroring a large cache for the first time takes seconds.
        match tokio::task::spawn_blocking(move || caches.prepare(&command)).await {
            Ok(Ok(access)) => Cow::Owned(access.added_to(self.complete().clone())),
            Ok(Err(_)) | Err(_) => Cow::Borrowed(self.complete()),
        }
    }

    /// The sandbox that confined commands run in.
    pub async fn sandbox(&self) -> Result<&Sandbox, SandboxError> {
        self.sandbox.get_or_try_init(|| self.make()).await
    }

    /// Makes the sandbox and checks what it enforces, since policy judges commands on that assumption.
    async fn make(&self) -> Result<Sandbox, SandboxError> {
        let (profile, environment) = (self.profile.clone(), self.toolchains.clone());
        let complete = tokio::task::spawn_blocking(move || profile.with_toolchains(&environment));
        let sandbox = Sandbox::new(self.options.clone()).await?;
        if let Ok(found) = complete.await {
            _ = self.complete.set(found);
        }
        let spec = LaunchSpec::shell("");
        requirements::check(&sandbox.prepare(&*self.profile(&spec).await, &spec).await?, self.weakest)?;
        self.profile.staging.as_deref().into_iter().for_each(overlay_changes::sweep);
        Ok(sandbox)
    }

    async fn open(&self) -> Result<&Sandbox, SandboxError> {
        let options = SandboxOptions { tier: Some(Tier::Open), warm: 0, ..self.options.clone() };
        self.open.get_or_try_init(|| Sandbox::new(options)).await
    }
}

/// All words of a command, also where it isn't a line for a shell.
fn words(spec: &LaunchSpec) -> String {
    let arguments = spec.arguments.iter().map(|argument| argument.to_string_lossy());
    [spec.program.to_string_lossy()]
        .into_iter()
        .chain(arguments)
        .fold(spec.command.clone(), |line, word| line + " " + &word)
}

impl ProcessLauncher for SandboxedProcesses {
    fn launch(&self, spec: LaunchSpec) -> BoxFuture<'_, Result<Arc<dyn ChildProcess>, ToolError>> {
        Box::pin(async { Ok(Arc::new(self.launch(spec).await?) as _) })
    }

    fn protects(&self) -> BoxFuture<'_, Result<bool, ToolError>> {
        Box::pin(async { Ok(self.sandbox().await?.tier() != Tier::Landlock) })
    }
}
