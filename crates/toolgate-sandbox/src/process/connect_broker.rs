//! Connects Unix sockets on behalf of a sandbox. The host's sockets in the workspace are files like others, and no mount, mask
//! or Landlock rule of today's kernels keeps a command from connecting to one that is bound after the command has started. So
//! the kernel asks the host about every `connect` (seccomp user notification), and the host makes the connection itself, if the
//! socket was bound inside of the sandbox. The command's own system call never goes on: between a look at its arguments and the
//! call, another thread could have changed them.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use rustix::net::AddressFamily;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::bound_sockets::BoundSockets;
use super::syscall::async_fd::watch;
use super::syscall::connect::connect;
use super::syscall::seccomp::{self, Notification};
use crate::files::openat2::openat2;

/// Connections that are made at the same time; more wait. A connection may take long, and takes a thread.
const AT_ONCE: usize = 16;
/// The largest address of any socket family (`struct sockaddr_storage`).
const MAX_ADDRESS_BYTES: usize = 128;
/// Where an address has what follows its family.
const AFTER_FAMILY: usize = size_of::<libc::sa_family_t>();

/// Answers the notifications of one sandbox until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectBroker(JoinHandle<()>);

/// Which sockets a command may connect to.
#[derive(Debug)]
pub(super) struct ReachableSockets {
    /// Directories that nobody else can bind a socket in.
    pub(super) private: Vec<PathBuf>,
    /// Directories that others can bind sockets in as well.
    pub(super) shared: Vec<PathBuf>,
    /// The sockets of the sandbox's network namespace; none if that is the host's.
    pub(super) bound: Option<BoundSockets>,
}

impl ConnectBroker {
    /// Starts to answer.
    pub(super) fn start(listener: OwnedFd, reachable: ReachableSockets) -> std::io::Result<Self> {
        let listener = Arc::new(watch(listener)?);
        let (reachable, permits) = (Arc::new(reachable), Arc::new(Semaphore::new(AT_ONCE)));
        Ok(Self(tokio::spawn(async move {
            while let Ok(mut ready) = listener.readable().await {
                // Receiving waits if nobody asks, so it isn't tried on the word of an event that may be an old one.
                let notification = match is_asked(listener.get_ref()) {
                    true => seccomp::receive(listener.get_ref()).ok(),
                    false => None,
                };
                let Some(notification) = notification else {
                    if ready.ready().is_read_closed() {
                        // Everything in the sandbox has ended.
                        return;
                    }
                    ready.clear_ready();
                    continue;
                };
                drop(ready);
                let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
                let (listener, reachable) = (Arc::clone(&listener), Arc::clone(&reachable));
                tokio::task::spawn_blocking(move || {
                    let answer = answer(listener.get_ref(), &notification, &reachable);
                    // Nobody waits for the answer if the process has ended.
                    let _ = seccomp::respond(listener.get_ref(), &notification, answer);
                    drop(permit);
                });
            }
        })))
    }
}

impl Drop for ConnectBroker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether a process waits for an answer.
fn is_asked(listener: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().contains(PollFlags::IN)
}

/// Makes the connection that a process asked for, if it may.
fn answer(listener: &OwnedFd, asked: &Notification, reachable: &ReachableSockets) -> Result<(), Errno> {
    let [descriptor, address, length, ..] = asked.arguments;
    let length = usize::try_from(length as u32).unwrap_or(usize::MAX);
    if length > MAX_ADDRESS_BYTES {
        return Err(Errno::INVAL);
    }
    let address = read_memory(asked.thread, address, length)?;
    let process = rustix::process::pidfd_open(process_of(asked.thread)?, PidfdFlags::empty())?;
    let socket = rustix::process::pidfd_getfd(&process, descriptor as i32, PidfdGetfdFlags::empty())?;
    // The thread's number may have been given to another one since.
    seccomp::check_waiting(listener, asked)?;
    let family = address.first_chunk().map(|family| libc::sa_family_t::from_ne_bytes(*family));
    let is_unix = rustix::net::sockopt::socket_domain(&socket)? == AddressFamily::UNIX;
    if !is_unix || family != Some(libc::AF_UNIX as libc::sa_family_t) {
        return connect(&socket, &address);
    }
    let name = &address[AFTER_FAMILY..];
    match name.first() {
        // Abstract names belong to the network namespace.
        None | Some(0) if reachable.bound.is_some() => connect(&socket, &address),
        None | Some(0) => Err(Errno::PERM),
        Some(_) => {
            let path = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let file = open_inside(asked.thread, path)?;
            check_reachable(asked.thread, &file, reachable)?;
            // By its descriptor, so it is the file that was checked.
            let link = format!("/proc/self/fd/{}", file.as_raw_fd());
            let family = (libc::AF_UNIX as libc::sa_family_t).to_ne_bytes();
            connect(&socket, &[&family[..], link.as_bytes(), &[0]].concat())
        }
    }
}

/// Opens a path as a process in the sandbox would, without its rights: nothing but the file's identity is used.
fn open_inside(thread: u32, path: &[u8]) -> Result<OwnedFd, Errno> {
    let root = rustix::fs::open(format!("/proc/{thread}/root"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let directory = rustix::fs::readlink(format!("/proc/{thread}/cwd"), Vec::new())?;
    let path = Path::new(OsStr::from_bytes(directory.to_bytes())).join(OsStr::from_bytes(path));
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(root.as_fd(), &path, flags, ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS)
}

/// Fails unless a socket was bound in the sandbox.
fn check_reachable(thread: u32, file: &OwnedFd, reachable: &ReachableSockets) -> Result<(), Errno> {
    let found = rustix::fs::fstat(file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Err(Errno::CONNREFUSED);
    }
    let path = rustix::fs::readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new())?;
    let path = PathBuf::from(OsString::from_vec(path.into_bytes()));
    let lies_in = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
    let is_bound_inside = || -> Result<bool, Errno> {
        let Some(bound) = &reachable.bound else { return Ok(false) };
        bound.contains(device_of(thread, file)?, found.st_ino)
    };
    match (lies_in(&reachable.shared), lies_in(&reachable.private)) {
        (true, _) if is_bound_inside()? => Ok(()),
        (false, true) => Ok(()),
        _ => Err(Errno::ACCESS),
    }
}

/// The device number of the file system that a file is on, as the kernel has it: `stat` shows another one on some.
fn device_of(thread: u32, file: &OwnedFd) -> Result<(u32, u32), Errno> {
    let mount = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id;
    let mounts = std::fs::read_to_string(format!("/proc/{thread}/mountinfo")).map_err(|_| Errno::SRCH)?;
    let device = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let is_it = fields.next()?.parse() == Ok(mount);
        let (major, minor) = fields.nth(1)?.split_once(':')?;
        is_it.then_some((major.parse().ok()?, minor.parse().ok()?))
    });
    device.ok_or(Errno::STALE)
}

/// The process of a thread.
fn process_of(thread: u32) -> Result<Pid, Errno> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).map_err(|_| Errno::SRCH)?;
    let number = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    number.and_then(Pid::from_raw).ok_or(Errno::SRCH)
}

fn read_memory(thread: u32, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; length];
    let memory =
        rustix::fs::openat(CWD, format!("/proc/{thread}/mem"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    std::fs::File::from(memory).read_exact_at(&mut bytes, address).map_err(|_| Errno::FAULT)?;
    Ok(bytes)
}
