//! Finds out which tiers work on this machine, by building a sandbox of each, strongest first.

use std::path::{Path, PathBuf};

use toolgate_contract::NetworkAccess;

use super::command_paths::CommandPaths;
use super::enforcement::Tier;
use super::error::SandboxError;
use super::instance::SandboxInstance;
use super::limits::ResourceLimits;
use super::planning;
use super::profile::{Profile, UnixSockets};
use super::setup::bubblewrap;
use super::zygote::Zygote;

/// The strongest tier that works, or `forced` if that works.
pub(super) async fn strongest(zygote: &Zygote, forced: Option<Tier>) -> Result<Tier, SandboxError> {
    if forced == Some(Tier::Open) {
        return Ok(Tier::Open);
    }
    let mut tried = Vec::new();
    for tier in [Tier::Namespaces, Tier::Bubblewrap, Tier::Landlock] {
        if forced.is_some_and(|forced| forced != tier) {
            continue;
        }
        match attempt(zygote, tier).await {
            Ok(()) => return Ok(tier),
            Err(error) => tried.push((tier, error.to_string())),
        }
    }
    Err(SandboxError::Unavailable { tried })
}

/// Which tiers work and why the others don't, strongest first.
pub(super) async fn try_each(zygote: &Zygote) -> Vec<(Tier, Result<(), SandboxError>)> {
    let mut tried = Vec::new();
    for tier in [Tier::Namespaces, Tier::Bubblewrap, Tier::Landlock] {
        tried.push((tier, attempt(zygote, tier).await));
    }
    tried
}

/// Builds one sandbox and drops it.
async fn attempt(zygote: &Zygote, tier: Tier) -> Result<(), SandboxError> {
    let path = Path::new(bubblewrap::PROGRAM.to_str().unwrap_or_default());
    if tier == Tier::Bubblewrap && !path.exists() {
        return Err(SandboxError::Root { path: path.to_owned(), error: rustix::io::Errno::NOENT });
    }
    let profile = plain_profile();
    let paths = CommandPaths { masked: profile.masked.clone(), ..CommandPaths::default() };
    let plan = planning::plan(&profile, &paths, &NetworkAccess::Off, tier, Vec::new())?;
    let packed = postcard::to_allocvec(&plan).unwrap_or_default();
    let mut instance = SandboxInstance::request(zygote, tier, &packed).await?;
    instance.ready().await.map(drop)
}

/// A profile that needs every mechanism: nothing is writable, some paths are masked, and there are no Unix sockets.
fn plain_profile() -> Profile {
    Profile {
        readable: Profile::system(),
        writable: Vec::new(),
        caches: Vec::new(),
        shown: Vec::new(),
        git_directory: None,
        home: None,
        masked: vec![PathBuf::from("/etc/shadow"), PathBuf::from("/etc/ssl/private")],
        secret: Vec::new(),
        protected: Vec::new(),
        unix_sockets: UnixSockets::None,
        limits: ResourceLimits::default(),
        environment: std::collections::BTreeMap::new(),
        working_directory: PathBuf::from("/"),
        roots: Vec::new(),
        staging: None,
    }
}
