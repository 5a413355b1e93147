//! The maker of sandboxes: one for a whole program, shared by whoever runs commands.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use tokio::net::unix::pipe;

use super::cage::{Cage, PAUSE_BEFORE_THE_NEXT, is_gone};
use super::command::{Command, Streams};
use super::decoys::Decoys;
use super::enforcement::{Enforcement, Findings, Tier};
use super::error::{Doing, SandboxError};
use super::limits::most_of_the_memory;
use super::plan::{Overlay, Plan};
use super::profile::{Network, Profile};
use super::rehearsal::Rehearsal;
use super::running::{Running, Terminal};
use super::warm::Warm;
use super::zygote::Zygote;
use super::{planning, probe};
use crate::network::{Relay, Resolver, SystemResolver};

/// How often a sandbox is planned anew because something was gone when it was built: sockets come and go.
const MOST_ATTEMPTS: u32 = 20;

/// How sandboxes are made.
#[derive(Debug, Clone)]
pub struct Options {
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

impl Default for Options {
    fn default() -> Self {
        let memory = Some(most_of_the_memory());
        Self { program: None, tier: None, warm: 1, resolver: Arc::new(SystemResolver), memory }
    }
}

/// Makes sandboxes and runs commands in them. A clone is the same one. When the last is dropped, everything that still runs
/// inside is killed.
#[derive(Debug, Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    tier: Tier,
    zygote: tokio::sync::Mutex<Arc<Zygote>>,
    warm: Mutex<Warm>,
}

impl Sandbox {
    /// Starts the zygote and finds out what this machine can do, by doing it.
    pub async fn new(options: Options) -> Result<Self, SandboxError> {
        let zygote = Zygote::start(options.program.clone(), options.memory).await?;
        let tier = probe::strongest(&zygote, options.tier).await?;
        let zygote = tokio::sync::Mutex::new(Arc::new(zygote));
        Ok(Self { inner: Arc::new(Inner { options, tier, zygote, warm: Mutex::default() }) })
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
    pub async fn spawn(&self, profile: &Profile, command: &Command) -> Result<Running, SandboxError> {
        let mut attempts = 1..=MOST_ATTEMPTS;
        loop {
            match self.spawn_as_things_are(profile, command).await {
                Err(SandboxError::Step(fault)) if fault.is_about_what_was_there() && attempts.next().is_some() => {}
                other => return other,
            }
        }
    }

    async fn spawn_as_things_are(&self, profile: &Profile, command: &Command) -> Result<Running, SandboxError> {
        let plan = self.plan(profile, Vec::new())?;
        let order = planning::order(profile, command)?;
        let packed = self.packed(&plan)?;
        let warm = self.warm(|warm| warm.take(&packed));
        if let Some(cage) = warm {
            match self.launch(cage, profile, &plan, &order, command.streams).await {
                // It died while it waited, and nothing was run. Another one is built.
                Err(error) if is_gone(&error) => {}
                other => return self.and_prepare_the_next(packed, other),
            }
        }
        let cage = self.cage(&packed).await?;
        let running = self.launch(cage, profile, &plan, &order, command.streams).await;
        self.and_prepare_the_next(packed, running)
    }

    /// Runs a command with no walls around it, in the profile's environment. Everything that it starts still ends with it.
    pub async fn spawn_open(&self, profile: &Profile, command: &Command) -> Result<Running, SandboxError> {
        let plan = planning::plan_open(profile);
        let order = planning::order(profile, command)?;
        let cage = self.cage_of(Tier::Open, &self.packed(&plan)?).await?;
        let open = Profile { network: Network::Shared, ..profile.clone() };
        self.launch(cage, &open, &plan, &order, command.streams).await
    }

    /// Runs a command whose changes to what is writable are kept apart: it sees them, the folders don't get them. They are
    /// gathered in `folder`, which has to exist outside of everything writable, and are gone when the rehearsal is dropped.
    pub async fn rehearse(
        &self,
        profile: &Profile,
        command: &Command,
        folder: &std::path::Path,
    ) -> Result<(Running, Rehearsal), SandboxError> {
        self.need_namespaces("keep changes apart")?;
        let rehearsal = Rehearsal::prepare(profile, folder)?;
        let plan = self.plan(profile, rehearsal.overlays())?;
        let order = planning::order(profile, command)?;
        // Every rehearsal has folders of its own, so no sandbox could have been built ahead for it.
        let cage = self.cage(&self.packed(&plan)?).await?;
        Ok((self.launch(cage, profile, &plan, &order, command.streams).await?, rehearsal))
    }

    /// Builds a sandbox for this profile ahead, and tells what would confine a command in it.
    pub async fn prepare(&self, profile: &Profile) -> Result<Enforcement, SandboxError> {
        let plan = self.plan(profile, Vec::new())?;
        let packed = self.packed(&plan)?;
        self.warm(|warm| warm.touch(&packed));
        let findings = match self.prepare_one(&packed).await {
            Some(findings) => findings?,
            // Enough of them wait already. Another one is asked all the same, as what holds is seen only by building it.
            None => self.cage(&packed).await?.ready().await?,
        };
        Ok(Enforcement::of(&plan, &findings))
    }

    /// Builds one more for the same plan, unless as many wait as the options say.
    async fn prepare_one(&self, packed: &[u8]) -> Option<Result<Findings, SandboxError>> {
        if !self.warm(|warm| warm.reserve(packed, self.inner.options.warm)) {
            return None;
        }
        let mut reservation = Reservation { sandbox: self, packed, cage: None };
        let built = async {
            let mut cage = self.cage(packed).await?;
            let findings = cage.ready().await?;
            reservation.cage = Some(cage);
            Ok(findings)
        };
        Some(built.await)
    }

    fn plan(&self, profile: &Profile, overlays: Vec<Overlay>) -> Result<Plan, SandboxError> {
        if matches!(profile.network, Network::Listed(_)) {
            self.need_namespaces("hold a list of hosts")?;
        }
        planning::plan(profile, self.inner.tier, overlays)
    }

    fn need_namespaces(&self, what: &str) -> Result<(), SandboxError> {
        if self.inner.tier == Tier::Namespaces {
            return Ok(());
        }
        let reason = format!("only namespaces of our own making can {what}");
        Err(SandboxError::Unavailable { tried: vec![(self.inner.tier, reason)] })
    }

    fn packed(&self, plan: &Plan) -> Result<Vec<u8>, SandboxError> {
        postcard::to_allocvec(plan).map_err(|_| rustix::io::Errno::INVAL).doing("Writing down the sandbox's plan")
    }

    async fn launch(
        &self,
        mut cage: Cage,
        profile: &Profile,
        plan: &Plan,
        order: &super::plan::Order,
        streams: Streams,
    ) -> Result<Running, SandboxError> {
        let (host, inside) = connect(streams)?;
        let launched = cage.launch(order, &inside).await?;
        drop(inside);
        let terminal = launched.terminal.map(Terminal::new).transpose()?;
        let enforcement = Enforcement::of(plan, &cage.findings());
        let relay = self.relay(profile, &mut cage)?;
        let decoys = Arc::new(Decoys::new(cage.take_watch(), &plan.secret));
        let HostStreams { stdin, stdout, stderr } = host;
        let process = launched.process;
        Ok(Running { stdin, stdout, stderr, terminal, enforcement, cage, process, relay, decoys, ended: None })
    }

    /// Answers at the sandbox's doors. Whoever knocks before this is done waits for it.
    fn relay(&self, profile: &Profile, cage: &mut Cage) -> Result<Option<Relay>, SandboxError> {
        let Network::Listed(listed) = &profile.network else { return Ok(None) };
        let (border, resolver) = (Arc::clone(&listed.0), Arc::clone(&self.inner.options.resolver));
        Relay::start(cage.take_doors(), border, resolver).doing("Answering at the sandbox's doors").map(Some)
    }

    /// Asks for a new sandbox. A zygote that somebody killed is replaced.
    async fn cage(&self, packed: &[u8]) -> Result<Cage, SandboxError> {
        self.cage_of(self.inner.tier, packed).await
    }

    async fn cage_of(&self, tier: Tier, packed: &[u8]) -> Result<Cage, SandboxError> {
        let zygote = Arc::clone(&*self.inner.zygote.lock().await);
        match Cage::request(&zygote, tier, packed).await {
            Err(error) if is_gone(&error) => {
                let mut current = self.inner.zygote.lock().await;
                if Arc::ptr_eq(&current, &zygote) {
                    self.warm(Warm::clear);
                    *current =
                        Arc::new(Zygote::start(self.inner.options.program.clone(), self.inner.options.memory).await?);
                }
                Cage::request(&current, tier, packed).await
            }
            other => other,
        }
    }

    /// Builds the next sandbox for the same plan while the command runs.
    fn and_prepare_the_next(
        &self,
        packed: Vec<u8>,
        running: Result<Running, SandboxError>,
    ) -> Result<Running, SandboxError> {
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

    fn warm<T>(&self, act: impl FnOnce(&mut Warm) -> T) -> T {
        act(&mut self.inner.warm.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A place on the shelf for a sandbox that is being built. It is given back also if whoever builds it gives up.
struct Reservation<'a> {
    sandbox: &'a Sandbox,
    packed: &'a [u8],
    cage: Option<Cage>,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.sandbox.warm(|warm| warm.fulfil(self.packed, self.cage.take()));
    }
}

/// The host's ends of a command's streams.
struct HostStreams {
    stdin: Option<pipe::Sender>,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
}

/// Makes the streams: the host's ends, and the three that go inside. A terminal is made inside and comes from there.
fn connect(streams: Streams) -> Result<(HostStreams, Vec<OwnedFd>), SandboxError> {
    const WHAT: &str = "Making pipes for the command";
    let pipe_pair = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).doing(WHAT);
    let receiver = |end: OwnedFd| {
        rustix::io::ioctl_fionbio(&end, true).doing(WHAT)?;
        pipe::Receiver::from_owned_fd(end).doing(WHAT).map(Some)
    };
    let mut host = HostStreams { stdin: None, stdout: None, stderr: None };
    let input = match streams {
        Streams::Terminal(_) => return Ok((host, Vec::new())),
        Streams::Output => {
            rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).doing(WHAT)?
        }
        Streams::Interactive => {
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
