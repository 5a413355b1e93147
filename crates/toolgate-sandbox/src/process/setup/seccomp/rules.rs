//! The seccomp rules: which system calls are refused, and why. Whatever isn't listed is allowed: ordinary programs use most
//! of the rest, and namespaces, mounts and Landlock limit what they reach with it. Listed is what gets around those, or has
//! been a way into the kernel before.

use libc::{EAFNOSUPPORT, ENOSYS, EPERM, ESOCKTNOSUPPORT, c_long};

/// When a system call is refused, and with which error.
#[derive(Debug, Clone)]
pub(super) struct SyscallRule {
    /// The number of the system call (`SYS_*`).
    pub(super) call: c_long,
    /// Checks that all have to hold. Without any, the system call is always refused.
    pub(super) when: Vec<ArgumentCheck>,
    /// The `errno` that the program gets.
    pub(super) error: i32,
}

/// A check of one argument. The kernel uses only the lower 32 bits of the arguments that are checked here.
#[derive(Debug, Clone)]
pub(super) struct ArgumentCheck {
    /// Which argument, from 0.
    pub(super) argument: u32,
    /// The condition.
    pub(super) test: ArgumentTest,
}

/// A condition on an argument.
#[derive(Debug, Clone)]
pub(super) enum ArgumentTest {
    /// The argument is this value.
    Is(u32),
    /// The argument isn't this value.
    IsNot(u32),
    /// The argument has at least one of these bits.
    HasAny(u32),
    /// The argument is none of these values.
    IsNone(Vec<u32>),
}

/// What differs between filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AllowedCalls {
    /// Whether Unix sockets can be made.
    pub(super) unix_sockets: bool,
    /// Whether internet sockets can be made.
    pub(super) internet_sockets: bool,
    /// Whether processes can be traced.
    pub(super) tracing: bool,
}

/// `asm-generic/unistd.h`: `open_tree_attr`, since Linux 6.15, with the same number on every architecture. `libc` has it for
/// none of ours yet.
const SYS_OPEN_TREE_ATTR: c_long = 467;

/// System calls that are always refused, with `EPERM`.
const REFUSED: &[c_long] = &[
    // Advising on the memory of other processes, or taking their descriptors.
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // io_uring makes almost any system call without passing this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Kernel keyrings belong to the user, not to the sandbox.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Code that runs in the kernel, and kernel internals.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_syslog,
    // Lets a program stop the kernel in the middle of a memory access, on which exploits rely.
    libc::SYS_userfaultfd,
    // The mounts decide what a command can see.
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
    SYS_OPEN_TREE_ATTR,
    // The command stays in its namespaces.
    libc::SYS_setns,
    libc::SYS_unshare,
    // Opens a file by handle, without permission for the directories on the way.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Watches a whole file system.
    libc::SYS_fanotify_init,
    // The clock, the name and the power of the machine.
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // Moves the memory of other processes between NUMA nodes.
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];

/// System calls by which debuggers and sanitizers look into other processes. In a PID namespace of our own those are the command's,
/// as the first process isn't dumpable; a tracer can't make a system call that the filter of the traced process refuses.
const TRACING: &[c_long] = &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];

/// System calls that exist on x86-64 only, and are always refused.
#[cfg(target_arch = "x86_64")]
const REFUSED_ON_ARCH: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_ON_ARCH: &[c_long] = &[];

/// Flags of `clone` that make a namespace.
const CLONE_NEW_FLAGS: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// `ioctl` requests that affect others at the same terminal: faked input, pasting the selection, a changed line discipline.
const TERMINAL_IOCTLS: [libc::Ioctl; 3] = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];

/// Which argument of `socket` and `socketpair` is the family, which the type, and which the protocol.
const SOCKET_FAMILY: u32 = 0;
const SOCKET_TYPE: u32 = 1;
const SOCKET_PROTOCOL: u32 = 2;
/// Which argument of `ioctl` is the request.
const IOCTL_REQUEST: u32 = 1;
/// Which argument of `clone` has the flags.
const CLONE_FLAGS: u32 = 0;

/// All rules.
pub(super) fn all(allowed: AllowedCalls) -> Vec<SyscallRule> {
    let mut rules = sockets(allowed);
    rules.extend(TERMINAL_IOCTLS.map(|request| {
        let check = ArgumentCheck { argument: IOCTL_REQUEST, test: ArgumentTest::Is(request as u32) };
        SyscallRule { call: libc::SYS_ioctl, when: vec![check], error: EPERM }
    }));
    // The flags of `clone3` are behind a pointer, which a filter can't follow. On ENOSYS the C library uses `clone` instead.
    rules.push(SyscallRule { call: libc::SYS_clone3, when: Vec::new(), error: ENOSYS });
    let new_namespaces = ArgumentCheck { argument: CLONE_FLAGS, test: ArgumentTest::HasAny(CLONE_NEW_FLAGS as u32) };
    rules.push(SyscallRule { call: libc::SYS_clone, when: vec![new_namespaces], error: EPERM });
    let tracing = TRACING.iter().filter(|_| !allowed.tracing);
    let always = REFUSED.iter().chain(REFUSED_ON_ARCH).chain(tracing);
    rules.extend(always.map(|call| SyscallRule { call: *call, when: Vec::new(), error: EPERM }));
    rules
}

/// Allows the socket families that ordinary programs use, and no other: no AF_PACKET, AF_ALG, AF_VSOCK, AF_BLUETOOTH. Of
/// AF_NETLINK only NETLINK_ROUTE is allowed, which tells of addresses and routes.
fn sockets(allowed: AllowedCalls) -> Vec<SyscallRule> {
    let mut families = vec![libc::AF_NETLINK];
    families.extend(allowed.unix_sockets.then_some(libc::AF_UNIX));
    families.extend(allowed.internet_sockets.then_some([libc::AF_INET, libc::AF_INET6]).into_iter().flatten());
    let families = families.into_iter().map(|family| family as u32).collect();
    let other_families = SyscallRule {
        call: libc::SYS_socket,
        when: vec![ArgumentCheck { argument: SOCKET_FAMILY, test: ArgumentTest::IsNone(families) }],
        error: EPERM,
    };
    let other_netlink = SyscallRule {
        call: libc::SYS_socket,
        when: vec![
            ArgumentCheck { argument: SOCKET_FAMILY, test: ArgumentTest::Is(libc::AF_NETLINK as u32) },
            ArgumentCheck { argument: SOCKET_PROTOCOL, test: ArgumentTest::IsNot(libc::NETLINK_ROUTE as u32) },
        ],
        error: EAFNOSUPPORT,
    };
    let mut rules = vec![other_families, other_netlink];
    rules.extend([libc::SYS_socket, libc::SYS_socketpair].map(datagrams_between_processes));
    rules
}

/// Refuses Unix sockets for datagrams, also in pairs: each can send to any socket that it names, without `connect`, which is
/// watched.
fn datagrams_between_processes(call: c_long) -> SyscallRule {
    let flags = [0, libc::SOCK_CLOEXEC, libc::SOCK_NONBLOCK, libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK];
    let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
    let types = connected.iter().flat_map(|kind| flags.map(|flags| (kind | flags) as u32)).collect();
    SyscallRule {
        call,
        when: vec![
            ArgumentCheck { argument: SOCKET_FAMILY, test: ArgumentTest::Is(libc::AF_UNIX as u32) },
            ArgumentCheck { argument: SOCKET_TYPE, test: ArgumentTest::IsNone(types) },
        ],
        error: ESOCKTNOSUPPORT,
    }
}
