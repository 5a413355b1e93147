//! Where we may not make namespaces ourselves but the system's `bwrap` may (some distributions allow it alone), it makes
//! them and the mounts; our own program is the first process inside and does the rest.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use super::super::plan::{NetworkPlan, PinnedPath, SandboxPlan, TmpfsMount};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::clone3::{OneThread, spawn_vfork};
use super::super::syscall::execve::{ExecStrings, execute};
use super::super::syscall::{descriptors, signals};
use super::super::wire;
use super::mounts::open_no_links;
use super::reaper;
use super::zygote_main::{INNER_NAME, INNER_PLAN, INNER_SOCKET, c_string};

/// Where `bwrap` is looked for: only where the system's administrator puts it.
pub(in super::super) const PROGRAM: &CStr = c"/usr/bin/bwrap";

/// Starts `bwrap`, which becomes the first process of a sandbox, and watches over it. Killed in the wrong moment, `bwrap`
/// leaves a half-made child behind; so nobody kills it but this process, which adopts and kills what is left, too.
pub(super) fn run(one: &OneThread, plan: &SandboxPlan, socket: &OwnedFd) -> Result<i32, SetupFault> {
    // It waits for its child, and so do we; the zygote's own habit of forgetting them would hide it from both.
    signals::default_sigchld();
    let children = signals::watch_children().during(SetupStep::ExecuteBubblewrap);
    let watched = children.and_then(|children| {
        let pid = start(one, plan, socket)?;
        reaper::wait(pid, socket, &children);
        reaper::clear();
        Ok(0)
    });
    if let Err(fault) = &watched {
        let _ = wire::say(socket.as_fd(), &wire::SandboxMessage::Refused(fault.clone()), &[]);
    }
    watched
}

fn start(one: &OneThread, plan: &SandboxPlan, socket: &OwnedFd) -> Result<i32, SetupFault> {
    let step = SetupStep::ExecuteBubblewrap;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).during(step)?;
    let program = rustix::fs::readlink(c"/proc/self/exe", Vec::new()).during(step)?;
    let packed = wire::pack(plan).during(step)?;
    let arguments = arguments(plan, &program);
    // It needs none of the environment, and what runs inside is told its own.
    let (arguments, environment) = (ExecStrings::new(&arguments), ExecStrings::new(&[]));
    let mut fault = None;
    let started = spawn_vfork(one, || {
        let handed = signals::block_none()
            .and_then(|()| descriptors::duplicate_to(socket.as_fd(), INNER_SOCKET, false))
            .and_then(|()| descriptors::duplicate_to(packed.as_fd(), INNER_PLAN, false));
        fault = Some(handed.err().unwrap_or_else(|| execute(PROGRAM, &arguments, &environment)));
        127
    });
    let started = started.during(step)?;
    fault.map_or(Ok(started.pid), Err).during(step)
}

/// The whole command line: the same walls in the same order as we build them ourselves.
fn arguments(plan: &SandboxPlan, program: &CStr) -> Vec<CString> {
    let mut line = BwrapArguments(vec![c"bwrap".to_owned()]);
    line.words("--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try");
    line.words("--die-with-parent --as-pid-1 --new-session --cap-drop ALL");
    if plan.network != NetworkPlan::Shared {
        line.words("--unshare-net");
    }
    match &plan.only {
        None => line.words("--ro-bind / /"),
        Some(places) => {
            places.iter().for_each(|place| line.bind("--ro-bind", place));
            plan.links.iter().for_each(|(path, target)| line.pair("--symlink", target, path));
        }
    }
    line.words("--proc /proc --dev /dev");
    plan.covered.iter().for_each(|cover| line.cover(cover, plan.limits.temporary_bytes));
    let (late, early): (Vec<_>, Vec<_>) = granted(plan).partition(|(_, place)| plan.is_in_a_hollow(place));
    early.into_iter().for_each(|(option, place)| line.bind(option, place));
    plan.hollow.iter().for_each(|cover| line.cover(cover, plan.limits.temporary_bytes));
    late.into_iter().for_each(|(option, place)| line.bind(option, place));
    plan.hollow.iter().for_each(|cover| line.0.extend([c_string("--remount-ro"), cover.path.clone()]));
    plan.pinned.iter().for_each(|place| line.bind("--bind", place));
    plan.protected.iter().for_each(|place| line.bind("--ro-bind", place));
    // Something may have gone meanwhile, and what isn't there can't be covered.
    let masked = plan.masked.iter().chain(&plan.secret);
    masked.filter(|place| open_no_links(&place.path).is_ok()).for_each(|place| line.mask(place));
    let inner = c_string(format!("/run/{INNER_NAME}"));
    line.pair("--ro-bind", program, &inner);
    line.words("--chdir / --");
    line.0.push(inner);
    line.0
}

/// What was granted, to be read and to be changed.
fn granted(plan: &SandboxPlan) -> impl Iterator<Item = (&'static str, &PinnedPath)> {
    let shown = plan.shown.iter().map(|place| ("--ro-bind", place));
    shown.chain(plan.writable.iter().map(|place| ("--bind", place)))
}

/// A command line in the making.
struct BwrapArguments(Vec<CString>);

impl BwrapArguments {
    fn words(&mut self, words: &str) {
        self.0.extend(words.split(' ').map(c_string));
    }

    fn pair(&mut self, option: &str, first: &CStr, second: &CStr) {
        self.0.extend([c_string(option), first.to_owned(), second.to_owned()]);
    }

    fn bind(&mut self, option: &str, place: &PinnedPath) {
        self.pair(option, &place.path, &place.path);
    }

    /// An empty directory.
    fn cover(&mut self, cover: &TmpfsMount, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            self.words(&format!("--size {bytes}"));
        }
        self.words(if cover.shared { "--perms 1777 --tmpfs" } else { "--perms 0755 --tmpfs" });
        self.0.push(cover.path.clone());
    }

    /// A directory that can't be entered, or a device that can't be opened: `bwrap` binds without devices.
    fn mask(&mut self, place: &PinnedPath) {
        if place.directory {
            self.words("--perms 0000 --tmpfs");
            self.0.push(place.path.clone());
            self.words("--remount-ro");
            self.0.push(place.path.clone());
        } else {
            self.pair("--ro-bind", c"/dev/null", &place.path);
        }
    }
}
