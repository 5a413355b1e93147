//! Which system calls are refused, and why. Whatever isn't listed is allowed: ordinary programs use most of the rest, and
//! what they can reach with it is bounded by the other walls. Listed is what reaches around those walls or has been the
//! way into the kernel before.

use libc::{EAFNOSUPPORT, ENOSYS, EPERM, c_long};

/// One refusal: a call, when, and with which error.
#[derive(Debug, Clone)]
pub(super) struct SyscallRule {
    /// The number of the call.
    pub(super) call: c_long,
    /// All of these have to be so. None means always.
    pub(super) when: Vec<ArgumentCheck>,
    /// The error that it gets.
    pub(super) error: i32,
}

/// A look at one argument. The kernel uses only the lower 32 bits of those that are looked at here.
#[derive(Debug, Clone)]
pub(super) struct ArgumentCheck {
    /// Which argument, from 0.
    pub(super) argument: u32,
    /// What it is compared with.
    pub(super) test: ArgumentTest,
}

/// What can be asked of an argument.
#[derive(Debug, Clone)]
pub(super) enum ArgumentTest {
    /// It is this.
    Is(u32),
    /// It isn't this.
    IsNot(u32),
    /// It has one of these bits.
    HasAny(u32),
    /// It is none of these.
    IsNone(Vec<u32>),
}

/// What differs between filters.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllowedSockets {
    /// Whether Unix sockets can be made.
    pub(super) unix_sockets: bool,
    /// Whether internet sockets can be made.
    pub(super) internet_sockets: bool,
}

/// Refused always, with "not permitted".
const REFUSED: &[c_long] = &[
    // Looking into other processes, or taking their descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // A second way to make almost any call, which this filter wouldn't see.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys belong to the user, not to the sandbox.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Code in the kernel, and views into it.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_syslog,
    // Stopping the kernel in the middle of an access, which exploits live on.
    libc::SYS_userfaultfd,
    // Mounts are walls here.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // `open_tree_attr`, too new for the C library's list; the same number on every machine.
    467,
    // Namespaces: none is left, none is made.
    libc::SYS_setns,
    libc::SYS_unshare,
    // Opens by number, past every directory that bars the way.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Watching all of a file system.
    libc::SYS_fanotify_init,
    // The machine itself.
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // Moving other processes' memory around.
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];

/// Calls of the older machine alone.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// Kinds of new namespaces in the flags of `clone`.
const NEW_NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Requests to a terminal that reach whoever else uses it: typing for them, pasting for them, changing how it works.
const TERMINAL_REQUESTS: [libc::Ioctl; 3] = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];

/// All rules.
pub(super) fn all(variant: AllowedSockets) -> Vec<SyscallRule> {
    let mut rules = Vec::with_capacity(80);
    rules.extend(sockets(variant));
    rules.extend(TERMINAL_REQUESTS.map(|request| {
        let check = ArgumentCheck { argument: 1, test: ArgumentTest::Is(request as u32) };
        SyscallRule { call: libc::SYS_ioctl, when: vec![check], error: EPERM }
    }));
    // Its flags lie behind a pointer, where a filter can't look. Told that it doesn't exist, the C library uses `clone`.
    rules.push(SyscallRule { call: libc::SYS_clone3, when: Vec::new(), error: ENOSYS });
    let new_namespaces = ArgumentCheck { argument: 0, test: ArgumentTest::HasAny(NEW_NAMESPACES as u32) };
    rules.push(SyscallRule { call: libc::SYS_clone, when: vec![new_namespaces], error: EPERM });
    let always = REFUSED.iter().chain(REFUSED_HERE);
    rules.extend(always.map(|call| SyscallRule { call: *call, when: Vec::new(), error: EPERM }));
    rules
}

/// Families of sockets that ordinary programs use, and no other: packets, kernel cryptography, virtual machines, bluetooth
/// and the like stay shut. Of netlink only the questions about addresses and routes are left.
fn sockets(variant: AllowedSockets) -> Vec<SyscallRule> {
    let mut families = vec![libc::AF_NETLINK];
    families.extend(variant.unix_sockets.then_some(libc::AF_UNIX));
    families.extend(variant.internet_sockets.then_some([libc::AF_INET, libc::AF_INET6]).into_iter().flatten());
    let families = families.into_iter().map(|family| family as u32).collect();
    let other = SyscallRule {
        call: libc::SYS_socket,
        when: vec![ArgumentCheck { argument: 0, test: ArgumentTest::IsNone(families) }],
        error: EPERM,
    };
    let netlink = SyscallRule {
        call: libc::SYS_socket,
        when: vec![
            ArgumentCheck { argument: 0, test: ArgumentTest::Is(libc::AF_NETLINK as u32) },
            ArgumentCheck { argument: 2, test: ArgumentTest::IsNot(libc::NETLINK_ROUTE as u32) },
        ],
        error: EAFNOSUPPORT,
    };
    vec![other, netlink]
}
