//! Without a process namespace nothing ends by itself. The first process adopts whatever the command leaves behind, and
//! kills it, again and again until nobody is left. Behind `bwrap` it does the same, as it can't tell whether that still
//! watches over it.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// How often to look whether the command has ended. This is the weakest tier; it needn't be the fastest.
const A_MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Waits until the command ends or the host hangs up, then clears away everything that descends from us.
pub(super) fn wait_and_clear(pid: i32, socket: &OwnedFd) -> i32 {
    let status = wait(pid, socket);
    clear();
    status.unwrap_or(libc::SIGKILL)
}

/// The command's status; `None` when the host hung up first.
fn wait(pid: i32, socket: &OwnedFd) -> Option<i32> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((ended, status))) if ended.as_raw_nonzero().get() == pid => return Some(status.as_raw()),
            Ok(Some(_)) => continue,
            Err(Errno::CHILD) => return Some(0),
            Ok(None) | Err(_) => {}
        }
        let mut waiting = [PollFd::new(socket, PollFlags::IN)];
        if poll(&mut waiting, Some(&A_MOMENT)).is_ok_and(|ready| ready > 0) {
            return None;
        }
    }
}

/// Kills all descendants. Whoever loses its parent becomes our child, so looking again finds those that were missed.
fn clear() {
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
    children_of(super::zygote::own_number())
}

fn children_of(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let lists = threads.into_iter().flatten().flatten().filter_map(|thread| {
        let list = std::fs::read_to_string(thread.path().join("children"));
        list.ok()
    });
    lists.flat_map(|list| list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()).collect()
}
