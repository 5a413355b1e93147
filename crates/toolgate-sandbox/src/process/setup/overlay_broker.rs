//! Renames directories and makes hard links for the command where overlayfs can't. overlayfs refuses to rename a directory of
//! the lower layer (`EXDEV`), and gives a linked file of the lower layer two inode numbers. So the kernel asks the first
//! process about these system calls (seccomp user notification).
//!
//! The first process is confined as the command is: same user, same mounts, same Landlock domain, no capability. What it does
//! here the command could do itself, so nothing depends on what another thread makes of the arguments meanwhile: whatever isn't
//! one of the two cases goes on in the kernel as it was called.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, RenameFlags, StatxFlags};
use rustix::io::Errno;

use super::super::syscall::seccomp::{self, Notification};
use super::caller::{CallingThread, NamedEntry};
use super::move_directory::move_directory;

/// The system calls that the first process is asked about.
pub(super) const CALLS: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_landlock_restrict_self,
];

/// Programs that compare the inode number of a link with the one that they saw before, and copy where they can't link.
const COPY_WITHOUT_LINKS: &[&str] = &["git"];

/// The name that an entry has while it is exchanged with another one.
const ASIDE: &std::ffi::CStr = c".toolgate-exchange";

/// Answers the system calls of one command.
#[derive(Debug)]
pub(super) struct OverlayBroker {
    listener: OwnedFd,
    /// Whether a process of the command restricted itself further. The first process has no way to see by how much, so from
    /// then on every system call goes on in the kernel.
    has_inner_sandbox: bool,
}

/// How a system call is answered.
enum Answer {
    /// It was done here, with this result.
    Done(Result<(), Errno>),
    /// The kernel does it.
    Continue,
}

impl OverlayBroker {
    pub(super) fn new(listener: OwnedFd) -> Self {
        seccomp::take_turns(&listener);
        Self { listener, has_inner_sandbox: false }
    }

    /// Readable when a process waits for an answer.
    pub(super) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Answers one process that waits.
    pub(super) fn answer_next(&mut self) {
        let Ok(asked) = seccomp::receive(&self.listener) else { return };
        // Nobody waits for the answer if the process has ended.
        let _ = match self.answer(&asked) {
            Answer::Done(result) => seccomp::respond(&self.listener, &asked, result),
            Answer::Continue => seccomp::let_continue(&self.listener, &asked),
        };
    }

    fn answer(&mut self, asked: &Notification) -> Answer {
        self.has_inner_sandbox |= asked.call == libc::SYS_landlock_restrict_self;
        if self.has_inner_sandbox {
            return Answer::Continue;
        }
        let paths = FileCall::of(asked).and_then(|call| {
            let caller = CallingThread::new(asked.thread);
            // Most renames are of files; the kernel does those, and they needn't wait for more than this look.
            let is_of_directory = match call.kind {
                FileCallKind::Link => true,
                FileCallKind::Rename(flags) if flags.contains(RenameFlags::EXCHANGE) => {
                    caller.names_directory(call.old) || caller.names_directory(call.new)
                }
                FileCallKind::Rename(_) => caller.names_directory(call.old),
            };
            if !is_of_directory {
                return None;
            }
            let paths = (caller.entry(call.old).ok()?, caller.entry(call.new).ok()?);
            // The thread's number may have been given to another one since.
            seccomp::check_waiting(&self.listener, asked).ok()?;
            Some((call, caller, paths))
        });
        let Some((call, caller, (old, new))) = paths else { return Answer::Continue };
        match call.kind {
            FileCallKind::Rename(flags) => rename(&old, &new, flags),
            FileCallKind::Link => link(&old, &new, &caller),
        }
    }
}

/// The arguments of a system call with two paths.
struct FileCall {
    kind: FileCallKind,
    /// The directory's descriptor, and the address of the path.
    old: (i32, u64),
    new: (i32, u64),
}

enum FileCallKind {
    Rename(RenameFlags),
    Link,
}

impl FileCall {
    fn of(asked: &Notification) -> Option<Self> {
        let [first, second, third, fourth, fifth, _] = asked.arguments;
        let at = |kind| Some(Self { kind, old: (first as i32, second), new: (third as i32, fourth) });
        let here = |kind| Some(Self { kind, old: (libc::AT_FDCWD, first), new: (libc::AT_FDCWD, second) });
        match asked.call {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => here(FileCallKind::Rename(RenameFlags::empty())),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => here(FileCallKind::Link),
            libc::SYS_renameat => at(FileCallKind::Rename(RenameFlags::empty())),
            libc::SYS_renameat2 => at(FileCallKind::Rename(RenameFlags::from_bits(fifth as u32)?)),
            // What a link leads to, or an open file, isn't found by name.
            libc::SYS_linkat if fifth as u32 == 0 => at(FileCallKind::Link),
            _ => None,
        }
    }
}

/// Renames a directory.
fn rename(old: &NamedEntry, new: &NamedEntry, flags: RenameFlags) -> Answer {
    match rustix::fs::renameat_with(&old.directory, &old.name, &new.directory, &new.name, flags) {
        Err(Errno::XDEV) if flags.difference(RenameFlags::NOREPLACE).is_empty() && is_one_mount(old, new) => {
            Answer::Done(move_directory(old, new))
        }
        Err(Errno::XDEV) if flags == RenameFlags::EXCHANGE && is_one_mount(old, new) => {
            Answer::Done(exchange(old, new))
        }
        other => Answer::Done(other),
    }
}

/// Exchanges two entries by way of a third name. What can't be finished goes back.
fn exchange(old: &NamedEntry, new: &NamedEntry) -> Result<(), Errno> {
    let aside = NamedEntry { directory: old.directory.try_clone().map_err(|_| Errno::MFILE)?, name: ASIDE.to_owned() };
    move_entry(old, &aside)?;
    if let Err(error) = move_entry(new, old) {
        let _ = move_entry(&aside, old);
        return Err(error);
    }
    move_entry(&aside, new).inspect_err(|_| {
        let _ = move_entry(old, new);
        let _ = move_entry(&aside, old);
    })
}

/// Renames an entry to a name that is free.
fn move_entry(from: &NamedEntry, to: &NamedEntry) -> Result<(), Errno> {
    let renamed =
        rustix::fs::renameat_with(&from.directory, &from.name, &to.directory, &to.name, RenameFlags::NOREPLACE);
    match renamed {
        Err(Errno::XDEV) => move_directory(from, to),
        other => other,
    }
}

/// Whether two entries are in the same mount, so that overlayfs alone is why one can't be renamed to the other.
fn is_one_mount(old: &NamedEntry, new: &NamedEntry) -> bool {
    let mount = |entry: &NamedEntry| {
        let found = rustix::fs::statx(&entry.directory, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
        Ok::<_, Errno>(found.stx_mnt_id)
    };
    matches!((mount(old), mount(new)), (Ok(old), Ok(new)) if old == new)
}

/// Makes a hard link. Of a file of the lower layer overlayfs makes a copy with both names, and remembers another inode for the
/// first name: it is removed, and made again as a link to the second.
fn link(old: &NamedEntry, new: &NamedEntry, caller: &CallingThread) -> Answer {
    let Ok(before) = old.stat() else { return Answer::Continue };
    if !FileType::from_raw_mode(before.st_mode).is_file() {
        return Answer::Continue;
    }
    if let Err(error) = link_at(old, new) {
        return Answer::Done(Err(error));
    }
    let has_changed = new.stat().is_ok_and(|after| after.st_ino != before.st_ino);
    if has_changed && COPY_WITHOUT_LINKS.contains(&caller.program().as_str()) {
        let _ = new.unlink();
        return Answer::Done(Err(Errno::XDEV));
    }
    if has_changed && old.stat().is_ok_and(|now| now.st_ino == before.st_ino) && old.unlink().is_ok() {
        return Answer::Done(link_at(new, old));
    }
    Answer::Done(Ok(()))
}

fn link_at(old: &NamedEntry, new: &NamedEntry) -> Result<(), Errno> {
    rustix::fs::linkat(&old.directory, &old.name, &new.directory, &new.name, AtFlags::empty())
}
