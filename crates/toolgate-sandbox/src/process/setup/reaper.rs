//! Waits for the command and kills what it left running. With a PID namespace the kernel does that when the first process ends.
//! Without one, the first process is a subreaper: orphans become its children, and it kills until none is left. The process
//! that starts `bwrap` does the same.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use super::super::syscall::signals;
use super::super::wire::{self, SandboxMessage};
use super::exec::StartedCommand;
use super::overlay_broker::OverlayBroker;

/// Signals that are read from the signalfd at a time.
const SIGNALS_AT_ONCE: usize = 4;

/// Waits for a child, and reaps orphans meanwhile. Returns the child's status, or `None` if the host closed its end of the
/// socket first. `children` is a signalfd for SIGCHLD.
pub(super) fn wait(command: StartedCommand, socket: &OwnedFd, children: &OwnedFd) -> Option<i32> {
    let StartedCommand { pid, mut broker, is_job } = command;
    let options = if is_job { WaitOptions::NOHANG | WaitOptions::UNTRACED } else { WaitOptions::NOHANG };
    let mut has_child_ended = true;
    loop {
        while has_child_ended {
            match rustix::process::wait(options) {
                Ok(Some((child, status))) if child.as_raw_nonzero().get() == pid => match status.stopped() {
                    true => _ = wire::send_message(socket.as_fd(), &SandboxMessage::Stopped, &[]),
                    false => return Some(status.as_raw()),
                },
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => has_child_ended = false,
                Err(_) => return None,
            }
        }
        // Polled for no event, the socket reports only that its other end was closed.
        let mut waiting = vec![PollFd::new(socket, PollFlags::empty()), PollFd::new(children, PollFlags::IN)];
        waiting.extend(broker.as_ref().map(|broker| PollFd::new(broker.listener(), PollFlags::IN)));
        let _ = poll(&mut waiting, None);
        let events: Vec<PollFlags> = waiting.iter().map(PollFd::revents).collect();
        if !events[0].is_empty() {
            return None;
        }
        match events.get(2) {
            Some(asked) if asked.contains(PollFlags::IN) => broker.iter_mut().for_each(OverlayBroker::answer_next),
            // Everything that could ask has ended.
            Some(ended) if !ended.is_empty() => broker = None,
            _ => {}
        }
        if events[1].is_empty() {
            continue;
        }
        has_child_ended = true;
        let _ = rustix::io::read(children, &mut [0; SIGNALS_AT_ONCE * size_of::<libc::signalfd_siginfo>()]);
    }
}

/// Kills every other process in this PID namespace, so that none is left when the host is told that the command ended. (They
/// would die with us anyway, a little later.)
pub(super) fn kill_namespace() {
    // Whoever is left is our child, or has an ancestor who is. Killing goes through all processes of the machine.
    if let Err(Errno::CHILD) = rustix::process::wait(WaitOptions::NOHANG) {
        return;
    }
    signals::kill_all_others();
    while !matches!(rustix::process::wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
}

/// Kills all descendants. A process that loses its parent becomes our child, so the next round finds what this one missed.
pub(super) fn kill_descendants() {
    loop {
        for child in children() {
            kill_with_descendants(child);
        }
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn kill_with_descendants(pid: i32) {
    let Some(process) = Pid::from_raw(pid) else { return };
    // Stopped first, so that it can't fork while its children are listed.
    let _ = rustix::process::kill_process(process, Signal::STOP);
    for child in children_of(pid) {
        kill_with_descendants(child);
    }
    let _ = rustix::process::kill_process(process, Signal::KILL);
}

fn children() -> Vec<i32> {
    children_of(super::zygote_main::own_pid())
}

fn children_of(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let lists = threads.into_iter().flatten().flatten().filter_map(|thread| {
        let list = std::fs::read_to_string(thread.path().join("children"));
        list.ok()
    });
    lists.flat_map(|list| list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()).collect()
}
