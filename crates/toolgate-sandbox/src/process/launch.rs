//! Launches commands in sandboxes. One [`Sandbox`] is made for the whole program and shared by everything that runs commands.

use parking_lot::Mutex;
use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use toolgate_contract::{LaunchSpec, NetworkAccess};

use super::bound_sockets::BoundSockets;
use super::cgroup::MemoryCgroup;
use super::child::{Child, ChildResources, NewChild, PtyMaster};
use super::command_paths::link_workspace;
use super::command_plan::{CommandPlan, require_host_list, standing_plan};
use super::connect_broker::{ConnectBroker, ReachableSockets};
use super::decoy_watch::DecoyWatch;
use super::enforcement::{Enforcement, SetupFindings, Tier};
use super::error::{HostContext, SandboxError};
use super::instance::{LaunchedCommand, PAUSE_BEFORE_THE_NEXT, SandboxInstance, is_gone, pid_of};
use super::limits::default_memory_limit;
use super::pipes::connect;
use super::plan::{ExecRequest, NetworkPlan, SandboxPlan};
use super::probe;
use super::profile::Profile;
use super::warm_pool::WarmPool;
use super::zygote::Zygote;
use crate::network::{EgressProxy, Resolver, SystemResolver};

/// How often a sandbox is planned anew because a path of the plan no longer existed when it was built, such as a socket.
const MOST_ATTEMPTS: u32 = 20;

/// How sandboxes are made.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// The program to execute as zygote, by default this program. Its `main` calls
    /// [`zygote_main_if_asked`](super::zygote_main_if_asked) first.
    pub program: Option<PathBuf>,
    /// The tier to use, by default the strongest that works here.
    pub tier: Option<Tier>,
    /// How many sandboxes are built ahead for each profile in use.
    pub warm: usize,
    /// After how many sandboxes the zygote keeps a spare one, for whatever plan comes next. A program that makes a single call
    /// needs none.
    pub spare_after: usize,
    /// Looks up the names that commands may reach.
    pub resolver: Arc<dyn Resolver>,
    /// Memory of all commands together, in bytes, where a cgroup can limit it.
    pub memory: Option<u64>,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        let memory = Some(default_memory_limit());
        Self { program: None, tier: None, warm: 1, spare_after: 4, resolver: Arc::new(SystemResolver), memory }
    }
}

/// Makes sandboxes and runs commands in them. Clones share the same state. When the last clone is dropped, everything that
/// still runs in a sandbox is killed.
#[derive(Debug, Clone)]
pub struct Sandbox {
    inner: Arc<SandboxState>,
}

#[derive(Debug)]
struct SandboxState {
    options: SandboxOptions,
    tier: Tier,
    /// Whether a cgroup limits the memory of all commands together.
    has_memory_cgroup: bool,
    zygote: tokio::sync::Mutex<Arc<Zygote>>,
    warm: Mutex<WarmPool>,
}

/// What is started in a sandbox.
struct CommandStart<'a> {
    request: &'a ExecRequest,
    streams: &'a [OwnedFd],
    /// The cgroup that limits the command's memory, if it has a limit of its own.
    cgroup: Option<&'a MemoryCgroup>,
}

impl CommandStart<'_> {
    /// Runs the command in this sandbox, whose processes are in the cgroup before it starts.
    async fn launch(&self, instance: &mut SandboxInstance) -> Result<LaunchedCommand, SandboxError> {
        if let Some(cgroup) = self.cgroup {
            instance.ready().await?;
            // Asked anew: one that was killed while it waited may have left its number to another process.
            let process = || instance.first_process().and_then(pid_of);
            let added = process().map(|process| (process, cgroup.add_process(process)));
            match added {
                None => return Err(SandboxError::Vanished),
                Some((before, _)) if process() != Some(before) => return Err(SandboxError::Vanished),
                Some((_, false)) => return Err(SandboxError::MemoryLimit),
                Some((_, true)) => {}
            }
        }
        instance.launch(self.request, self.streams).await
    }
}

/// A cgroup of a command's own, where it has a limit for all its processes together and one can be made. Only in our own namespaces is it
/// known which process all others descend from.
fn own_cgroup(spec: &LaunchSpec, tier: Tier) -> Option<MemoryCgroup> {
    spec.memory_together.filter(|_| tier == Tier::Namespaces).and_then(MemoryCgroup::make)
}

impl Sandbox {
    /// Starts the zygote, and finds the strongest tier that works here by building a sandbox of each.
    pub async fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        let zygote = Zygote::start(&options).await?;
        let tier = probe::strongest(&zygote, options.tier).await?;
        let has_memory_cgroup = zygote.limits_memory();
        let zygote = tokio::sync::Mutex::new(Arc::new(zygote));
        let warm = Mutex::default();
        Ok(Self { inner: Arc::new(SandboxState { options, tier, has_memory_cgroup, zygote, warm }) })
    }

    /// Tries every tier, strongest first, and returns which work here and why the others don't.
    pub async fn try_tiers(program: Option<PathBuf>) -> Result<Vec<(Tier, Result<(), SandboxError>)>, SandboxError> {
        let zygote = Zygote::start(&SandboxOptions { program, memory: None, ..SandboxOptions::default() }).await?;
        Ok(probe::try_each(&zygote).await)
    }

    /// The tier that confines commands.
    pub fn tier(&self) -> Tier {
        self.inner.tier
    }

    /// Fails if the network access is a list of hosts and this tier can't enforce one: only our own namespaces can.
    pub fn require_host_list(&self, network: &NetworkAccess) -> Result<(), SandboxError> {
        require_host_list(network, self.inner.tier)
    }

    /// Starts a command: confined to the workspace's profile and what its spec adds, its changes in place or staged; or, where
    /// that was granted, without confinement. Every process that it starts ends with it.
    pub async fn launch(&self, profile: &Profile, spec: &LaunchSpec) -> Result<Child, SandboxError> {
        link_workspace(profile, spec)?;
        let mut attempts = 1..=MOST_ATTEMPTS;
        loop {
            match self.launch_once(profile, spec).await {
                Err(SandboxError::Step(fault)) if fault.is_stale_path() && attempts.next().is_some() => {}
                other => return other,
            }
        }
    }

    async fn launch_once(&self, profile: &Profile, spec: &LaunchSpec) -> Result<Child, SandboxError> {
        let CommandPlan { plan, request, confinement, staged, scratch } =
            CommandPlan::new(profile, spec, self.inner.tier)?;
        let cgroup = own_cgroup(spec, plan.tier);
        let plan = self.with_memory_limit(plan, spec, cgroup.is_some());
        let packed = packed(&plan)?;
        // Staged changes have directories of their own, so no sandbox could have been built ahead for them.
        let is_pooled = staged.is_none() && !spec.unsandboxed;
        let (pipes, inside) = connect(spec.streams)?;
        let waiting = if is_pooled { self.warm(|warm| warm.take(&packed)) } else { None };
        let start = CommandStart { request: &request, streams: &inside, cgroup: cgroup.as_ref() };
        let (mut instance, started) = self.start(waiting, plan.tier, &packed, &start).await?;
        drop(inside);
        if is_pooled {
            self.refill_pool(packed);
        }
        let proxy = self.proxy(&plan, &spec.network, &mut instance)?;
        let broker = connect_broker(&plan, &mut instance)?;
        Ok(Child::new(NewChild {
            terminal: started.terminal.map(PtyMaster::new).transpose()?,
            enforcement: Enforcement::of(&plan, &instance.findings()),
            decoys: DecoyWatch::new(instance.take_watch(), &plan.secret),
            process: started.process,
            instance,
            pipes,
            confinement,
            resources: ChildResources { proxy, broker, staged, scratch, cgroup },
        }))
    }

    /// Takes the usual limit off the memory of each process where a cgroup limits that of all: sanitizers reserve terabytes of
    /// memory that they never use, which counts for the one (`RLIMIT_DATA`) and not for the other.
    /// A command that may use less than others gets that limit; one for all its processes together only where it has no cgroup of its own.
    fn with_memory_limit(&self, mut plan: SandboxPlan, spec: &LaunchSpec, has_own_cgroup: bool) -> SandboxPlan {
        if self.inner.has_memory_cgroup && plan.limits.memory == Some(default_memory_limit()) {
            plan.limits.memory = None;
        }
        let for_each = spec.memory_together.filter(|_| !has_own_cgroup);
        if let Some(most) = spec.memory_bytes.into_iter().chain(for_each).min() {
            plan.limits.memory = Some(plan.limits.memory.map_or(most, |limit| limit.min(most)));
        }
        plan
    }

    /// Builds a sandbox for commands like this one ahead, and returns what it would enforce.
    pub async fn prepare(&self, profile: &Profile, spec: &LaunchSpec) -> Result<Enforcement, SandboxError> {
        let plan = self.with_memory_limit(standing_plan(profile, spec, self.inner.tier)?, spec, false);
        let packed = packed(&plan)?;
        self.warm(|warm| warm.touch(&packed));
        let findings = match self.prepare_one(&packed).await {
            Some(findings) => findings?,
            // The pool has enough. One more is built and dropped, as only building it shows what is enforced.
            None => self.instance(plan.tier, &packed).await?.ready().await?,
        };
        Ok(Enforcement::of(&plan, &findings))
    }

    /// Builds one more sandbox for the same plan, unless the pool has as many as the options say.
    async fn prepare_one(&self, packed: &[u8]) -> Option<Result<SetupFindings, SandboxError>> {
        if !self.warm(|warm| warm.reserve(packed, self.inner.options.warm)) {
            return None;
        }
        let mut reservation = PoolReservation { sandbox: self, packed, instance: None };
        let built = async {
            let mut instance = self.instance(self.inner.tier, packed).await?;
            let findings = match instance.ready().await {
                Err(error) if is_gone(&error) => {
                    instance = self.instance(self.inner.tier, packed).await?;
                    instance.ready().await?
                }
                ready => ready?,
            };
            reservation.instance = Some(instance);
            Ok(findings)
        };
        Some(built.await)
    }

    /// Runs the command in a sandbox from the pool, or in a new one.
    async fn start(
        &self,
        waiting: Option<SandboxInstance>,
        tier: Tier,
        packed: &[u8],
        start: &CommandStart<'_>,
    ) -> Result<(SandboxInstance, LaunchedCommand), SandboxError> {
        if let Some(mut instance) = waiting {
            match start.launch(&mut instance).await {
                // It was killed while it waited, and nothing was run. A new one is built.
                Err(error) if is_gone(&error) => {}
                started => return Ok((instance, started?)),
            }
        }
        let mut instance = self.instance(tier, packed).await?;
        match start.launch(&mut instance).await {
            // It was killed before it was confined, and nothing was run.
            Err(error) if is_gone(&error) && !instance.is_confined() => {
                instance = self.instance(tier, packed).await?;
                let started = start.launch(&mut instance).await?;
                Ok((instance, started))
            }
            started => Ok((instance, started?)),
        }
    }

    /// Starts the proxy at the sandbox's listeners. Connections made before this wait in the backlog.
    fn proxy(
        &self,
        plan: &SandboxPlan,
        network: &NetworkAccess,
        instance: &mut SandboxInstance,
    ) -> Result<Option<EgressProxy>, SandboxError> {
        let (NetworkPlan::Listed { .. }, NetworkAccess::Listed(egress)) = (&plan.network, network) else {
            return Ok(None);
        };
        let (egress, resolver) = (Arc::clone(egress), Arc::clone(&self.inner.options.resolver));
        EgressProxy::start(instance.take_listeners(), egress, resolver).doing("Starting the egress proxy").map(Some)
    }

    /// Asks for a new sandbox. A zygote that was killed is replaced.
    async fn instance(&self, tier: Tier, packed: &[u8]) -> Result<SandboxInstance, SandboxError> {
        let zygote = Arc::clone(&*self.inner.zygote.lock().await);
        match SandboxInstance::request(&zygote, tier, packed).await {
            Err(error) if is_gone(&error) => {
                let mut current = self.inner.zygote.lock().await;
                if Arc::ptr_eq(&current, &zygote) {
                    self.warm(WarmPool::clear);
                    *current = Arc::new(Zygote::start(&self.inner.options).await?);
                }
                SandboxInstance::request(&current, tier, packed).await
            }
            other => other,
        }
    }

    /// Builds the next sandbox for the same plan while the command runs.
    fn refill_pool(&self, packed: Vec<u8>) {
        if self.inner.options.warm == 0 {
            return;
        }
        let weak = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            tokio::time::sleep(PAUSE_BEFORE_THE_NEXT).await;
            let Some(inner) = weak.upgrade() else { return };
            let sandbox = Self { inner };
            // If one can't be built, the next command reports why.
            while let Some(Ok(_)) = sandbox.prepare_one(&packed).await {}
        });
    }

    fn warm<T>(&self, act: impl FnOnce(&mut WarmPool) -> T) -> T {
        act(&mut self.inner.warm.lock())
    }
}

/// Starts to make the connections that the command asks for, if it asks. Those of before wait.
fn connect_broker(plan: &SandboxPlan, instance: &mut SandboxInstance) -> Result<Option<ConnectBroker>, SandboxError> {
    let Some(listener) = instance.take_connects() else { return Ok(None) };
    let path = |path: &CString| PathBuf::from(OsStr::from_bytes(path.to_bytes()));
    let own = plan.tmpfs_mounts.iter().filter(|tmpfs| tmpfs.writable).map(|tmpfs| path(&tmpfs.path));
    let reachable = ReachableSockets {
        private: own.chain([PathBuf::from("/dev/shm")]).collect(),
        shared: plan.writable.iter().chain(&plan.shown).map(|place| path(&place.path)).collect(),
        bound: instance.take_bound().map(BoundSockets::new),
    };
    ConnectBroker::start(listener, reachable).doing("Watching the command's connections").map(Some)
}

/// Reserved space in the pool for a sandbox that is being built. Dropping it frees the space if none was built.
struct PoolReservation<'a> {
    sandbox: &'a Sandbox,
    packed: &'a [u8],
    instance: Option<SandboxInstance>,
}

impl Drop for PoolReservation<'_> {
    fn drop(&mut self) {
        self.sandbox.warm(|warm| warm.finish_reservation(self.packed, self.instance.take()));
    }
}

fn packed(plan: &SandboxPlan) -> Result<Vec<u8>, SandboxError> {
    postcard::to_allocvec(plan).map_err(|_| rustix::io::Errno::INVAL).doing("Serializing the sandbox's plan")
}
