//! The end of a command, and of all that it left behind. With a process namespace the kernel sees to the rest; without one
//! nothing ends by itself, so the first process adopts whoever is left and kills, again and again, until nobody is. So does
//! whoever watches over `bwrap`.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use super::super::syscall::signals;

/// Waits for a child, and for whoever was left to us meanwhile. Its status; `None` when the host hung up first, and with it
/// went the reason to go on. `children` tells when one has ended.
pub(super) fn wait(pid: i32, socket: &OwnedFd, children: &OwnedFd) -> Option<i32> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((ended, status))) if ended.as_raw_nonzero().get() == pid => return Some(status.as_raw()),
            Ok(Some(_)) | Err(Errno::INTR) => continue,
            Ok(None) => {}
            Err(_) => return None,
        }
        // Of the socket it asks nothing, and so is told of the other end's leaving alone.
        let mut waiting = [PollFd::new(socket, PollFlags::empty()), PollFd::new(children, PollFlags::IN)];
        let _ = poll(&mut waiting, None);
        if !waiting[0].revents().is_empty() {
            return None;
        }
        let _ = rustix::io::read(children, &mut [0; 512]);
    }
}

/// Ends everybody else in this process namespace, so that once the command's end is told nobody is left but us. (They would
/// die with us anyway, a little later.)
pub(super) fn clear_namespace() {
    signals::kill_all_others();
    while !matches!(rustix::process::wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
}

/// Kills all descendants. Whoever loses its parent becomes our child, so looking again finds those that were missed.
pub(super) fn clear() {
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
    // It is stopped first, so that it can't start another while its children are looked up.
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
