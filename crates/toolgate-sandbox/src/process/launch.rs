//! The maker of sandboxes: one for a whole program, shared by whoever runs commands.

use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use tokio::net::unix::pipe;

use super::child::{Child, PtyMaster};
use super::decoy_watch::DecoyWatch;
use super::enforcement::{Enforcement, SetupFindings, Tier};
use super::error::{HostContext, SandboxError};
use super::instance::{PAUSE_BEFORE_THE_NEXT, SandboxInstance, is_gone};
use super::limits::default_memory_limit;
use super::plan::{OverlayMount, SandboxPlan};
use super::profile::{NetworkAccess, Profile};
use super::rehearsal::Rehearsal;
use super::spec::{CommandSpec, StandardStreams};
use super::warm_pool::WarmPool;
use super::zygote::Zygote;
use super::{planning, probe};
use crate::network::{EgressProxy, Resolver, SystemResolver};

/// How often a sandbox is planned anew because something was gone when it was built: sockets come and go.
const MOST_ATTEMPTS: u32 = 20;

/// How sandboxes are made.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// The program to execute as zygote; this very program unless said. Its `main` calls
    /// [`zygote_main_if_asked`](super::zygote_main_if_asked) first.
    pub program: Option<PathBuf>,
    /// The means to use. Unless said, the strongest that works here.
    pub tier: Option<Tier>,
    /// How many sandboxes wait ready for each profile in use.
    pub warm: usize,
    /// Looks up the names that commands may reach.
    pub resolver: Arc<dyn Resolver>,
    /// Memory of all commands together, in bytes, where this machine lets us limit that.
    pub memory: Option<u64>,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        let memory = Some(default_memory_limit());
        Self { program: None, tier: None, warm: 1, resolver: Arc::new(SystemResolver), memory }
    }
}

/// Makes sandboxes and runs commands in them. A clone is the same one. When the last is dropped, everything that still runs
/// inside is killed.
#[derive(Debug, Clone)]
pub struct Sandbox {
    inner: Arc<SandboxState>,
}

#[derive(Debug)]
struct SandboxState {
    options: SandboxOptions,
    tier: Tier,
    zygote: tokio::sync::Mutex<Arc<Zygote>>,
    warm: Mutex<WarmPool>,
}

impl Sandbox {
    /// Starts the zygote and finds out what this machine can do, by doing it.
    pub async fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        let zygote = Zygote::start(options.program.clone(), options.memory).await?;
        let tier = probe::strongest(&zygote, options.tier).await?;
        let zygote = tokio::sync::Mutex::new(Arc::new(zygote));
        Ok(Self { inner: Arc::new(SandboxState { options, tier, zygote, warm: Mutex::default() }) })
    }

    /// Tries every means of confinement, strongest first, and tells which work here and why the others don't.
    pub async fn survey(program: Option<PathBuf>) -> Result<Vec<(Tier, Result<(), SandboxError>)>, SandboxError> {
        let zygote = Zygote::start(program, None).await?;
        Ok(probe::each(&zygote).await)
    }

    /// The means of confinement that is used.
    pub fn tier(&self) -> Tier {
        self.inner.tier
    }

    /// Runs a command confined to a profile.
    pub async fn spawn(&self, profile: &Profile, command: &CommandSpec) -> Result<Child, SandboxError> {
        let mut attempts = 1..=MOST_ATTEMPTS;
        loop {
            match self.spawn_once(profile, command).await {
                Err(SandboxError::Step(fault)) if fault.is_stale_path() && attempts.next().is_some() => {}
                other => return other,
            }
        }
    }

    async fn spawn_once(&self, profile: &Profile, command: &CommandSpec) -> Result<Child, SandboxError> {
        let plan = self.plan(profile, Vec::new())?;
        let order = planning::order(profile, command)?;
        let packed = self.packed(&plan)?;
        let warm = self.warm(|warm| warm.take(&packed));
        if let Some(instance) = warm {
            match self.launch(instance, profile, &plan, &order, command.streams).await {
                // It died while it waited, and nothing was run. Another one is built.
                Err(error) if is_gone(&error) => {}
                other => return self.refill_pool(packed, other),
            }
        }
        let instance = self.instance(&packed).await?;
        let running = self.launch(instance, profile, &plan, &order, command.streams).await;
        self.refill_pool(packed, running)
    }

    /// Runs a command with no walls around it, in the profile's environment. Everything that it starts still ends with it.
    pub async fn spawn_unconfined(&self, profile: &Profile, command: &CommandSpec) -> Result<Child, SandboxError> {
        let plan = planning::plan_unconfined(profile);
        let order = planning::order(profile, command)?;
        let instance = self.request_instance(Tier::Open, &self.packed(&plan)?).await?;
        let open = Profile { network: NetworkAccess::Shared, ..profile.clone() };
        self.launch(instance, &open, &plan, &order, command.streams).await
    }

    /// Runs a command whose changes to what is writable are kept apart: it sees them, the directories don't get them. They are
    /// gathered in `directory`, which has to exist outside of everything writable, and are gone when the rehearsal is dropped.
    pub async fn rehearse(
        &self,
        profile: &Profile,
        command: &CommandSpec,
        directory: &std::path::Path,
    ) -> Result<(Child, Rehearsal), SandboxError> {
        self.require_namespaces("keep changes apart")?;
        let rehearsal = Rehearsal::prepare(profile, directory)?;
        let plan = self.plan(profile, rehearsal.overlays())?;
        let order = planning::order(profile, command)?;
        // Every rehearsal has directories of its own, so no sandbox could have been built ahead for it.
        let instance = self.instance(&self.packed(&plan)?).await?;
        Ok((self.launch(instance, profile, &plan, &order, command.streams).await?, rehearsal))
    }

    /// Builds a sandbox for this profile ahead, and tells what would confine a command in it.
    pub async fn prepare(&self, profile: &Profile) -> Result<Enforcement, SandboxError> {
        let plan = self.plan(profile, Vec::new())?;
        let packed = self.packed(&plan)?;
        self.warm(|warm| warm.touch(&packed));
        let findings = match self.prepare_one(&packed).await {
            Some(findings) => findings?,
            // Enough of them wait already. Another one is asked all the same, as what holds is seen only by building it.
            None => self.instance(&packed).await?.ready().await?,
        };
        Ok(Enforcement::of(&plan, &findings))
    }

    /// Builds one more for the same plan, unless as many wait as the options say.
    async fn prepare_one(&self, packed: &[u8]) -> Option<Result<SetupFindings, SandboxError>> {
        if !self.warm(|warm| warm.reserve(packed, self.inner.options.warm)) {
            return None;
        }
        let mut reservation = PoolReservation { sandbox: self, packed, instance: None };
        let built = async {
            let mut instance = self.instance(packed).await?;
            let findings = instance.ready().await?;
            reservation.instance = Some(instance);
            Ok(findings)
        };
        Some(built.await)
    }

    fn plan(&self, profile: &Profile, overlays: Vec<OverlayMount>) -> Result<SandboxPlan, SandboxError> {
        if matches!(profile.network, NetworkAccess::Listed(_)) {
            self.require_namespaces("hold a list of hosts")?;
        }
        planning::plan(profile, self.inner.tier, overlays)
    }

    fn require_namespaces(&self, what: &str) -> Result<(), SandboxError> {
        if self.inner.tier == Tier::Namespaces {
            return Ok(());
        }
        let reason = format!("only namespaces of our own making can {what}");
        Err(SandboxError::Unavailable { tried: vec![(self.inner.tier, reason)] })
    }

    fn packed(&self, plan: &SandboxPlan) -> Result<Vec<u8>, SandboxError> {
        postcard::to_allocvec(plan).map_err(|_| rustix::io::Errno::INVAL).doing("Writing down the sandbox's plan")
    }

    async fn launch(
        &self,
        mut instance: SandboxInstance,
        profile: &Profile,
        plan: &SandboxPlan,
        order: &super::plan::ExecRequest,
        streams: StandardStreams,
    ) -> Result<Child, SandboxError> {
        let (host, inside) = connect(streams)?;
        let launched = instance.launch(order, &inside).await?;
        drop(inside);
        let terminal = launched.terminal.map(PtyMaster::new).transpose()?;
        let enforcement = Enforcement::of(plan, &instance.findings());
        let relay = self.relay(profile, &mut instance)?;
        let decoys = Arc::new(DecoyWatch::new(instance.take_watch(), &plan.secret));
        let HostStreams { stdin, stdout, stderr } = host;
        let process = launched.process;
        Ok(Child { stdin, stdout, stderr, terminal, enforcement, instance, process, relay, decoys, ended: None })
    }

    /// Answers at the sandbox's doors. Whoever knocks before this is done waits for it.
    fn relay(&self, profile: &Profile, instance: &mut SandboxInstance) -> Result<Option<EgressProxy>, SandboxError> {
        let NetworkAccess::Listed(listed) = &profile.network else { return Ok(None) };
        let (egress, resolver) = (Arc::clone(&listed.0), Arc::clone(&self.inner.options.resolver));
        EgressProxy::start(instance.take_listeners(), egress, resolver)
            .doing("Answering at the sandbox's doors")
            .map(Some)
    }

    /// Asks for a new sandbox. A zygote that somebody killed is replaced.
    async fn instance(&self, packed: &[u8]) -> Result<SandboxInstance, SandboxError> {
        self.request_instance(self.inner.tier, packed).await
    }

    async fn request_instance(&self, tier: Tier, packed: &[u8]) -> Result<SandboxInstance, SandboxError> {
        let zygote = Arc::clone(&*self.inner.zygote.lock().await);
        match SandboxInstance::request(&zygote, tier, packed).await {
            Err(error) if is_gone(&error) => {
                let mut current = self.inner.zygote.lock().await;
                if Arc::ptr_eq(&current, &zygote) {
                    self.warm(WarmPool::clear);
                    *current =
                        Arc::new(Zygote::start(self.inner.options.program.clone(), self.inner.options.memory).await?);
                }
                SandboxInstance::request(&current, tier, packed).await
            }
            other => other,
        }
    }

    /// Builds the next sandbox for the same plan while the command runs.
    fn refill_pool(&self, packed: Vec<u8>, running: Result<Child, SandboxError>) -> Result<Child, SandboxError> {
        let running = running?;
        if self.inner.options.warm > 0 {
            let weak = Arc::downgrade(&self.inner);
            tokio::spawn(async move {
                tokio::time::sleep(PAUSE_BEFORE_THE_NEXT).await;
                let Some(inner) = weak.upgrade() else { return };
                let sandbox = Self { inner };
                // One that can't be built is no loss here; the next command finds out why.
                while let Some(Ok(_)) = sandbox.prepare_one(&packed).await {}
            });
        }
        Ok(running)
    }

    fn warm<T>(&self, act: impl FnOnce(&mut WarmPool) -> T) -> T {
        act(&mut self.inner.warm.lock())
    }
}

/// A place on the shelf for a sandbox that is being built. It is given back also if whoever builds it gives up.
struct PoolReservation<'a> {
    sandbox: &'a Sandbox,
    packed: &'a [u8],
    instance: Option<SandboxInstance>,
}

impl Drop for PoolReservation<'_> {
    fn drop(&mut self) {
        self.sandbox.warm(|warm| warm.fulfil(self.packed, self.instance.take()));
    }
}

/// The host's ends of a command's streams.
struct HostStreams {
    stdin: Option<pipe::Sender>,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
}

/// Makes the streams: the host's ends, and the three that go inside. A terminal is made inside and comes from there.
fn connect(streams: StandardStreams) -> Result<(HostStreams, Vec<OwnedFd>), SandboxError> {
    const WHAT: &str = "Making pipes for the command";
    let pipe_pair = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).doing(WHAT);
    let receiver = |end: OwnedFd| {
        rustix::io::ioctl_fionbio(&end, true).doing(WHAT)?;
        pipe::Receiver::from_owned_fd(end).doing(WHAT).map(Some)
    };
    let mut host = HostStreams { stdin: None, stdout: None, stderr: None };
    let input = match streams {
        StandardStreams::Terminal(_) => return Ok((host, Vec::new())),
        StandardStreams::Output => {
            rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).doing(WHAT)?
        }
        StandardStreams::Interactive => {
            let (read, write) = pipe_pair()?;
            rustix::io::ioctl_fionbio(&write, true).doing(WHAT)?;
            host.stdin = Some(pipe::Sender::from_owned_fd(write).doing(WHAT)?);
            read
        }
    };
    let ((read_output, output), (read_errors, errors)) = (pipe_pair()?, pipe_pair()?);
    host.stdout = receiver(read_output)?;
    host.stderr = receiver(read_errors)?;
    Ok((host, vec![input, output, errors]))
}
