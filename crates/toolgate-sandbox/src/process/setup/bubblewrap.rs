//! Bubblewrap: some distributions allow user namespaces to the system's `bwrap` and not to other programs. There `bwrap` makes
//! the namespaces and mounts; our own program is the first process inside and does the rest.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;

use super::super::plan::{NetworkPlan, PinnedPath, SandboxPlan, TmpfsMount, is_inside};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::super::syscall::clone3::{OneThread, spawn_vfork};
use super::super::syscall::execve::{EXIT_EXEC_FAILED, ExecStrings, execute};
use super::super::syscall::{descriptors, signals};
use super::super::wire;
use super::exec::StartedCommand;
use super::mounts::{IGNORE_ALL, open_no_links};
use super::reaper;
use super::zygote_main::{INNER_NAME, INNER_PLAN, INNER_SOCKET, c_string};

/// The only path at which `bwrap` is looked for: an ordinary user can't put a program there.
pub(in super::super) const PROGRAM: &CStr = c"/usr/bin/bwrap";

/// Starts `bwrap` and waits until it ends. When `bwrap` is killed while it sets up, it leaves a child behind; so only this
/// process kills it, as a subreaper that also kills what is left.
pub(super) fn run(one: &OneThread, plan: &SandboxPlan, socket: &OwnedFd) -> Result<i32, SetupFault> {
    // `bwrap` and this process both wait for their children. The zygote ignores SIGCHLD, which would be inherited.
    signals::default_sigchld();
    let children = signals::watch_children().during(SetupStep::ExecuteBubblewrap);
    let ended = children.and_then(|children| {
        let pid = start(one, plan, socket)?;
        reaper::wait(StartedCommand { pid, broker: None, is_job: false }, socket, &children);
        reaper::kill_descendants();
        Ok(0)
    });
    if let Err(fault) = &ended {
        let _ = wire::send_message(socket.as_fd(), &wire::SandboxMessage::Refused(fault.clone()), &[]);
    }
    ended
}

fn start(one: &OneThread, plan: &SandboxPlan, socket: &OwnedFd) -> Result<i32, SetupFault> {
    let step = SetupStep::ExecuteBubblewrap;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).during(step)?;
    let program = rustix::fs::readlink(c"/proc/self/exe", Vec::new()).during(step)?;
    let packed = wire::to_memfd(plan).during(step)?;
    let contents = FileContents::new(plan).during(step)?;
    let arguments = arguments(plan, &program, &contents);
    // `bwrap` needs no environment, and the command gets its own.
    let (arguments, environment) = (ExecStrings::new(&arguments), ExecStrings::new(&[]));
    let mut fault = None;
    let started = spawn_vfork(one, || {
        let handed = signals::block_none()
            .and_then(|()| descriptors::duplicate_to(socket.as_fd(), INNER_SOCKET, false))
            .and_then(|()| descriptors::duplicate_to(packed.as_fd(), INNER_PLAN, false))
            .and_then(|()| contents.all().try_for_each(keep_open));
        fault = Some(handed.err().unwrap_or_else(|| execute(PROGRAM, &arguments, &environment)));
        EXIT_EXEC_FAILED
    });
    let started = started.during(step)?;
    fault.map_or(Ok(started.pid), Err).during(step)
}

/// The contents of files that `bwrap` makes, each in a memfd that it reads once.
struct FileContents {
    /// Those of the substitutes.
    substitutes: Vec<OwnedFd>,
    /// A `.gitignore` for each masked path.
    ignores: Vec<OwnedFd>,
}

impl FileContents {
    fn new(plan: &SandboxPlan) -> Result<Self, Errno> {
        let substitutes = plan.substitutes.iter().map(|substitute| wire::bytes_to_memfd(&substitute.content));
        let ignores = plan.masked.iter().map(|_| wire::bytes_to_memfd(IGNORE_ALL));
        Ok(Self { substitutes: substitutes.collect::<Result<_, _>>()?, ignores: ignores.collect::<Result<_, _>>()? })
    }

    fn all(&self) -> impl Iterator<Item = &OwnedFd> {
        self.substitutes.iter().chain(&self.ignores)
    }
}

/// Lets `bwrap` inherit a descriptor, under the number that it has.
fn keep_open(content: &OwnedFd) -> Result<(), Errno> {
    match content.as_raw_fd() {
        number if number > INNER_PLAN => descriptors::duplicate_to(content.as_fd(), number, false),
        _ => Err(Errno::BADF),
    }
}

/// The command line: the same mounts in the same order as in `mounts::build`.
fn arguments(plan: &SandboxPlan, program: &CStr, contents: &FileContents) -> Vec<CString> {
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
    plan.tmpfs_mounts.iter().for_each(|tmpfs| line.tmpfs(tmpfs, plan.limits.temporary_bytes));
    let (late, early): (Vec<_>, Vec<_>) = granted(plan).partition(|(_, place)| plan.is_in_late_tmpfs(place));
    early.into_iter().for_each(|(option, place)| line.bind(option, place));
    plan.late_tmpfs_mounts.iter().for_each(|tmpfs| line.tmpfs(tmpfs, plan.limits.temporary_bytes));
    late.into_iter().for_each(|(option, place)| line.bind(option, place));
    plan.late_tmpfs_mounts.iter().for_each(|tmpfs| line.0.extend([c_string("--remount-ro"), tmpfs.path.clone()]));
    plan.pinned.iter().for_each(|place| line.bind("--bind", place));
    plan.protected.iter().for_each(|place| line.bind("--ro-bind", place));
    let substitutes = plan.substitutes.iter().zip(&contents.substitutes);
    for (substitute, content) in substitutes.filter(|(substitute, _)| open_no_links(&substitute.place.path).is_ok()) {
        line.words(&format!("--perms {:04o} --ro-bind-data {}", substitute.mode & 0o777, content.as_raw_fd()));
        line.0.push(substitute.place.path.clone());
    }
    // `bwrap` fails on a path that has gone meanwhile.
    let ignores = contents.ignores.iter().map(Some).chain(std::iter::repeat(None));
    for (place, ignore) in plan.masked.iter().chain(&plan.secret).zip(ignores) {
        let is_in_a_root = plan.writable.iter().any(|root| is_inside(&place.path, &root.path));
        if open_no_links(&place.path).is_ok() {
            line.mask(place, ignore.filter(|_| is_in_a_root));
        }
    }
    let inner = c_string(format!("/run/{INNER_NAME}"));
    line.pair("--ro-bind", program, &inner);
    if plan.only.is_some() {
        line.words("--remount-ro /");
    }
    line.words("--chdir / --");
    line.0.push(inner);
    line.0
}

/// What was granted: read-only paths, then writable ones.
fn granted(plan: &SandboxPlan) -> impl Iterator<Item = (&'static str, &PinnedPath)> {
    let shown = plan.shown.iter().map(|place| ("--ro-bind", place));
    shown.chain(plan.writable.iter().map(|place| ("--bind", place)))
}

/// A command line under construction.
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

    /// Mounts a tmpfs.
    fn tmpfs(&mut self, tmpfs: &TmpfsMount, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            self.words(&format!("--size {bytes}"));
        }
        self.words(if tmpfs.shared { "--perms 1777 --tmpfs" } else { "--perms 0755 --tmpfs" });
        self.0.push(tmpfs.path.clone());
    }

    /// Hides a directory by an empty one that can't be entered, and a file by a device that can't be opened, because `bwrap`
    /// mounts with `nodev`. In the workspace, a directory can be listed and has a `.gitignore`.
    fn mask(&mut self, place: &PinnedPath, ignore: Option<&OwnedFd>) {
        if place.directory {
            self.words(if ignore.is_some() { "--perms 0555 --tmpfs" } else { "--perms 0000 --tmpfs" });
            self.0.push(place.path.clone());
            if let Some(ignore) = ignore {
                self.words(&format!("--perms 0444 --ro-bind-data {}", ignore.as_raw_fd()));
                self.0.push(c_string([place.path.to_bytes(), b"/.gitignore"].concat()));
            }
            self.words("--remount-ro");
            self.0.push(place.path.clone());
        } else {
            self.pair("--ro-bind", c"/dev/null", &place.path);
        }
    }
}
