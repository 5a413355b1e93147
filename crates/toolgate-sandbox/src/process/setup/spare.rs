//! A spare sandbox: a first process that waits in namespaces and a root of its own before there is a command for it. The zygote
//! makes it while there is nothing else to do, so that the command that comes next doesn't wait for what is the same in every
//! sandbox. It gets one plan and becomes that sandbox; it is never used again.
//!
//! What a plan grants is mounted from the machine's mounts as they are when the plan comes. The first process has left those by
//! then, so a second process stays there ([`Companion`]): it receives the plan, makes detached mounts of what was granted, and ends.

use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;

use super::super::enforcement::Tier;
use super::super::plan::{NetworkPlan, RootPlan, SandboxPlan};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::clone3::{self, ForkResult, OneThread};
use super::super::syscall::companion::Companion;
use super::super::syscall::{descriptors, loopback, mount};
use super::super::wire;
use super::first_process;
use super::mounts::{GrantedMounts, OwnRoot};
use super::namespaces::Identity;
use super::zygote_main::{INNER_SOCKET, end_process, keep_only};

/// After this many that couldn't be made or died, no more are made.
const MOST_FAILURES: usize = 3;

/// The spare sandbox of a zygote.
#[derive(Default)]
pub(super) struct SpareSandboxes {
    waiting: Option<SpareSandbox>,
    /// The root of the sandbox that was asked for last; the next one probably has the same.
    root: Option<RootPlan>,
    /// Whether a spare one is kept at all.
    pub(super) are_kept: bool,
    failures: usize,
}

/// A sandbox that waits for a plan.
struct SpareSandbox {
    socket: OwnedFd,
    process: OwnedFd,
    root: RootPlan,
}

impl SpareSandboxes {
    /// Whether one should be made as soon as there is time.
    pub(super) fn are_wanted(&self) -> bool {
        self.are_kept && self.waiting.is_none() && self.root.is_some() && self.failures < MOST_FAILURES
    }

    /// Makes one.
    pub(super) fn make(&mut self, one: &OneThread) {
        let Some(root) = self.root.clone() else { return };
        match SpareSandbox::make(one, root) {
            Ok(made) => self.waiting = Some(made),
            Err(_) => self.failures += 1,
        }
    }

    /// Hands a plan and the sandbox's socket to the sandbox that waits. Returns the pidfd of its first process; none if a new
    /// sandbox has to be made.
    pub(super) fn hand_over(&mut self, plan: &SandboxPlan, packed: &OwnedFd, end: &OwnedFd) -> Option<OwnedFd> {
        if plan.tier != Tier::Namespaces || plan.network == NetworkPlan::Shared {
            return None;
        }
        self.root = plan.separate_root();
        // One with another root ends with its socket.
        let spare = self.waiting.take().filter(|spare| Some(&spare.root) == self.root.as_ref())?;
        let handed = spare.hand_over(packed, end);
        self.failures += usize::from(handed.is_none());
        handed
    }
}

impl SpareSandbox {
    fn make(one: &OneThread, root: RootPlan) -> Result<Self, Errno> {
        let (ours, theirs) = wire::pair()?;
        let identity = Identity::current();
        match clone3::fork_into(one, clone3::SPARE_NAMESPACES)? {
            ForkResult::Child => end_process(|| become_spare(one, identity, theirs, &root)),
            ForkResult::Parent(process) => Ok(Self { socket: ours, process, root }),
        }
    }

    /// Hands over a plan; none if it couldn't be made, or was killed. One that is still being made is waited for, as making another
    /// would take longer.
    fn hand_over(self, packed: &OwnedFd, end: &OwnedFd) -> Option<OwnedFd> {
        wire::receive(self.socket.as_fd()).ok().flatten()?;
        wire::send(self.socket.as_fd(), wire::PLACEHOLDER, &[packed.as_fd(), end.as_fd()]).ok()?;
        Some(self.process)
    }
}

/// What the companion received and made.
struct ReceivedPlan {
    plan: SandboxPlan,
    end: OwnedFd,
    granted: Result<GrantedMounts, SetupFault>,
}

/// Waits for a plan, and becomes its sandbox.
fn become_spare(one: &OneThread, identity: Identity, socket: OwnedFd, root: &RootPlan) -> Result<i32, SetupFault> {
    let socket = Rc::new(keep_only(socket)?);
    let namespaces = first_process::begin(identity)?;
    loopback::bring_up().during(SetupStep::RaiseLoopback)?;
    let received = Rc::new(RefCell::new(None));
    let companion = {
        let (socket, received) = (Rc::clone(&socket), Rc::clone(&received));
        Companion::make(one, move || *received.borrow_mut() = receive(&socket))
    };
    let companion = companion.during(SetupStep::MakeNamespaces)?;
    mount::unshare().during(SetupStep::MakeNamespaces)?;
    let own_root = OwnRoot::enter(root)?;
    companion.take_turns().during(SetupStep::ReadRequest)?;
    // The zygote has ended, or doesn't want it any more.
    let Some(ReceivedPlan { plan, end, granted }) = received.borrow_mut().take() else { return Ok(0) };
    descriptors::duplicate_to(end.as_fd(), INNER_SOCKET, true).during(SetupStep::CloseDescriptors)?;
    // That number was the socket of the zygote before, and is the one of the sandbox now.
    std::mem::forget(socket);
    drop(end);
    let end = descriptors::adopt(INNER_SOCKET).during(SetupStep::CloseDescriptors)?;
    let mounted = granted.and_then(|granted| own_root.fill(&plan, &granted));
    first_process::run_mounted(one, &plan, namespaces, mounted, companion, &end)
}

/// Waits for a plan among the mounts of the machine, and takes from them what it grants. None if there is no plan.
fn receive(socket: &OwnedFd) -> Option<ReceivedPlan> {
    wire::send(socket.as_fd(), wire::PLACEHOLDER, &[]).ok()?;
    let received = wire::receive(socket.as_fd()).ok().flatten()?;
    let mut handed = received.descriptors.into_iter();
    let (packed, end) = (handed.next()?, handed.next()?);
    let plan: SandboxPlan = wire::from_memfd(packed).ok()?;
    let unshared = mount::unshare().during(SetupStep::MakeNamespaces);
    let granted = unshared.and_then(|()| GrantedMounts::take_from_machine(&plan));
    Some(ReceivedPlan { plan, end, granted })
}
